import { runLoad } from './load.ts'
import type { Bench } from './parts.ts'
import { alternate } from './quiet.ts'
import { median, spread, whole } from './report.ts'
import { eventsLoad, scoresLoad } from './servers.ts'

const PER_CALL = 100
const CONNECTIONS = 64
/** Bytes of scores per second, as a share of those of events. */
const TARGET = 0.8

/** Calls with scores compared with calls of as many events, by their bytes. */
export async function measureScores(bench: Bench): Promise<void> {
  const { service, seconds, report } = bench
  const shape = { connections: CONNECTIONS, seconds }
  const events = eventsLoad(service, service.port, PER_CALL, shape)
  for (const withIds of [false, true]) {
    const scores = scoresLoad(service, service.port, PER_CALL, { ...shape, withIds })
    const name = `scores: ${PER_CALL} a call${withIds ? ', with ids' : ''}, ${CONNECTIONS} connections`
    report.heading(name)
    const bytesOf = ({ requests }: typeof events) =>
      requests.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0) / requests.length
    const pairs = await alternate(
      bench,
      () => runLoad(events),
      () => runLoad(scores),
    )
    const failure = pairs.flat().find(({ firstFailure }) => firstFailure !== null)?.firstFailure
    if (failure) report.line(`FAILED: ${failure}`)
    const [eventBytes, scoreBytes] = [bytesOf(events), bytesOf(scores)]
    const mbOf = (bytes: number, calls: readonly number[]) => `${whole((median(calls) * bytes) / 1e6)} MB/s`
    const [ofEvents, ofScores] = [0, 1].map((index) => pairs.map((pair) => pair[index]!.callsPerSecond))
    report.line(`events   ${mbOf(eventBytes, ofEvents!)}, ${whole(eventBytes / PER_CALL)} bytes each`)
    report.line(`scores   ${mbOf(scoreBytes, ofScores!)}, ${whole(scoreBytes / PER_CALL)} bytes each`)
    const ratios = pairs.map(([a, b]) => (b.callsPerSecond * scoreBytes) / (a.callsPerSecond * eventBytes))
    const ratio = median(ratios)
    report.target(
      `${name}: ${ratio.toFixed(2)} of events by bytes (${spread(ratios)}), target ${TARGET}`,
      ratio >= TARGET,
    )
  }
}
