import { signal } from '@preact/signals'
import { sleep } from '../../../base/abort.ts'
import { previewOf } from '../../../base/conventions/preview.ts'
import { USAGE_NAMES } from '../../../base/conventions/usage-names.ts'
import type { Queries } from '../data/api.ts'
import { failureOf } from '../data/loading.ts'
import { isLive, type ListedRun, type RunSummary } from '../data/records.ts'

/** Input and output of a run, each on one line. */
export interface RunTexts {
  readonly input: string
  readonly output: string
}

interface Known<T> {
  readonly value: T
  /** Whether it was read after the run had ended, so that it will not change. */
  readonly isFinal: boolean
}

type Read<T> = (
  runs: readonly RunSummary[],
  queries: Queries,
  signal: AbortSignal,
) => Promise<ReadonlyMap<string, Known<T>>>

/** SQL lags behind by a moment, so details are read again after this time. */
const SETTLE_MS = 2_000
const TRIES_MAX = 4
const BATCH_MAX = 200
/** Of runs that are no longer shown, the oldest are forgotten. */
const KNOWN_MAX = 5_000

/**
 * What neither the list nor the feed says about the runs that are shown. It is read by SQL, for many runs at once: when a run
 * is first shown, and once more when it has ended.
 */
export class RunDetails<T> {
  readonly known = signal<ReadonlyMap<string, Known<T>>>(new Map())
  private wanted: readonly RunSummary[] = []
  private isReading = false
  private readonly tries = new Map<string, number>()

  /** @param closing ends all reads */
  constructor(
    private readonly read: Read<T>,
    private readonly queries: Queries,
    private readonly closing: AbortSignal,
  ) {}

  of(runId: string): T | undefined {
    return this.known.value.get(runId)?.value
  }

  /** Stores details that were found elsewhere. */
  take(found: Iterable<readonly [runId: string, Known<T>]>): void {
    const all = [...new Map([...this.known.peek(), ...found])]
    this.known.value = new Map(all.slice(-KNOWN_MAX))
  }

  /** Reads what is not known yet about these runs, instead of those that were wanted before. */
  want(runs: readonly RunSummary[]): void {
    this.wanted = runs
    if (!this.isReading) void this.readAll()
  }

  private async readAll(): Promise<void> {
    this.isReading = true
    try {
      for (let runs = this.missing(); runs.length > 0 && !this.closing.aborted; runs = this.missing()) {
        // Some runs have just ended, or were read too early.
        const wasTried = ({ run_id }: RunSummary) => this.known.peek().has(run_id) || this.tries.has(run_id)
        if (runs.some(wasTried)) await sleep(SETTLE_MS, this.closing)
        if (this.tries.size > KNOWN_MAX) this.tries.clear()
        for (const { run_id } of runs) this.tries.set(run_id, (this.tries.get(run_id) ?? 0) + 1)
        this.take(await this.read(runs, this.queries, this.closing))
      }
    } catch (error) {
      // The list is shown without the details.
      if (!this.closing.aborted) failureOf(error)
    } finally {
      this.isReading = false
    }
  }

  private missing(): readonly RunSummary[] {
    const known = this.known.peek()
    const isMissing = (run: RunSummary) => {
      const found = known.get(run.run_id)
      const isDone = found !== undefined && (found.isFinal || isLive(run))
      return !isDone && (this.tries.get(run.run_id) ?? 0) < TRIES_MAX
    }
    return this.wanted.filter(isMissing).slice(0, BATCH_MAX)
  }
}

/** The texts of a run as the list of the API has it. */
export function textsOf(run: ListedRun): readonly [string, Known<RunTexts>] {
  const value = { input: run.input_preview ?? '', output: run.output_preview ?? '' }
  return [run.run_id, { value, isFinal: !isLive(run) }]
}

/** Longer inputs and outputs are cut. */
const TEXT_LENGTH_MAX = 4_000

/** @throws ApiFailure */
export const readTexts: Read<RunTexts> = async (runs, queries, signal) => {
  const text = (column: string) => `left(ifNull(toJSONString(${column}), ''), ${TEXT_LENGTH_MAX})`
  const query = `SELECT run_id, status, ${text('input')} AS input_text, ${text('output')} AS output_text
    FROM runs WHERE run_id IN {ids:Array(UUID)}`
  const { rows } = await queries.run(query, { ids: runs.map(({ run_id }) => run_id) }, signal)
  return new Map(
    rows.map(({ run_id, status, input_text, output_text }) => {
      const value = {
        input: previewOf(String(input_text), 'input') ?? '',
        output: previewOf(String(output_text), 'output') ?? '',
      }
      return [String(run_id), { value, isFinal: !isLive({ status: String(status) }) }]
    }),
  )
}

/** The models of the first and the last call of each run. @throws ApiFailure */
export const readModels: Read<string> = async (runs, queries, signal) => {
  const names = USAGE_NAMES.model.map((name) => `payload.${name}::String`).join(', ')
  const calls = `type = 'llm.call' AND agent_id IN {agents:Array(UUID)} AND run_id IN {ids:Array(UUID)}`
  // Payloads are expensive to read, so only those of two calls are.
  const query = `SELECT run_id, arrayStringConcat(arrayDistinct(groupArray(model)), ', ') AS models
    FROM (
      SELECT run_id, arrayFirst(x -> x != '', [${names}]) AS model FROM events
      WHERE ${calls} AND seq IN (SELECT arrayJoin([min(seq), max(seq)]) FROM events WHERE ${calls} GROUP BY run_id)
      ORDER BY seq
    )
    WHERE model != '' GROUP BY run_id`
  const ids = runs.map(({ run_id }) => run_id)
  const { rows } = await queries.run(query, { ids, agents: [...new Set(runs.map((run) => run.agent_id))] }, signal)
  const models = new Map(rows.map(({ run_id, models }) => [String(run_id), String(models)]))
  return new Map(
    runs.map((run) => {
      const model = models.get(run.run_id)
      const isSettled = model !== undefined || Date.now() - Date.parse(run.completed_at ?? '') > TRIES_MAX * SETTLE_MS
      return [run.run_id, { value: model ?? '', isFinal: !isLive(run) && isSettled }]
    }),
  )
}
