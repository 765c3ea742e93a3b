import { EventScan } from '../../src/activity/events/scan.ts'
import { ScanMemory } from '../../src/activity/events/scan-memory.ts'
import { createSimdMemory } from '../../src/base/http/simd-text.ts'
import { createRandom } from '../../src/cli/demo/random.ts'
import { writeValue } from '../../src/doors/traces/json-writer.ts'
import { type AnyValue, Utf8Text } from '../../src/doors/traces/telemetry.ts'
import { Bytes } from '../../src/stores/clickhouse/bytes.ts'
import { LIMITS } from '../support/events.ts'
import { eventBodies } from './bodies.ts'
import { modelCall } from './model-call.ts'
import type { Bench } from './parts.ts'
import { median, spread } from './report.ts'

/** Less, and the SIMD instructions are not worth their module; steps are short and should lose nothing. */
const TARGETS = { steps: 1, 'model calls': 1.3, attribute: 4 } as const
const ROUNDS_MIN = 7
const SCANS = 300
const WRITES = 10_000
const EVENTS_PER_CALL = 100

/** The scan of event bodies, and texts written as JSON, by SIMD instructions (`base/http/simd-text.ts`) and without. */
export async function measureTexts({ report, rounds }: Bench): Promise<void> {
  report.heading('texts: processor time without SIMD instructions, of that with them')
  const simd = createSimdMemory()
  if (simd === undefined) return report.line('there are no SIMD instructions here')
  const inSimd = new ScanMemory(simd)
  const inPlain = new ScanMemory({ bytes: new Uint8Array(simd.bytes.length), skipText: undefined })
  const compare = (what: string, target: number, calls: number, plain: Work, fast: Work) => {
    const ratios: number[] = []
    // The first is only to warm up.
    for (let round = 0; round <= Math.max(rounds, ROUNDS_MIN); round++) {
      const ratio = timeOf(calls, plain) / timeOf(calls, fast)
      if (round > 0) ratios.push(ratio)
    }
    const ratio = median(ratios)
    report.target(`${what}: ${ratio.toFixed(1)} (${spread(ratios)}), target ${target}`, ratio >= target)
  }
  for (const content of ['steps', 'model calls'] as const) {
    const bodies = eventBodies([crypto.randomUUID()], EVENTS_PER_CALL, content).map((body) => Buffer.from(body))
    const scan = (memory: ScanMemory) => (call: number) => {
      const scan = new EventScan(memory)
      scan.scan(bodies[call % bodies.length]!, LIMITS, false)
      scan.release()
    }
    compare(`scan of ${EVENTS_PER_CALL} ${content}`, TARGETS[content], SCANS, scan(inPlain), scan(inSimd))
  }
  const random = createRandom(1)
  const texts = Array.from({ length: 50 }, () => Buffer.from(JSON.stringify(modelCall(random))))
  const out = new Bytes()
  const write = (asValue: (text: Buffer) => AnyValue) => (call: number) => {
    out.clear()
    writeValue(out, asValue(texts[call % texts.length]!))
  }
  const decoded = write((text) => text.toString())
  const inPlace = write((text) => new Utf8Text(text, 0, text.length))
  compare('attribute of 4 KB, itself JSON, written as JSON', TARGETS.attribute, WRITES, decoded, inPlace)
}

type Work = (call: number) => void

/** Processor time, because other work on the machine changes it little. */
function timeOf(calls: number, work: Work): number {
  const start = process.cpuUsage()
  for (let call = 0; call < calls; call++) work(call)
  const { user, system } = process.cpuUsage(start)
  return user + system
}
