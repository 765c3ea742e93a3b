import { scoreProblems } from '../../activity/scores/problem.ts'
import type { NewScore } from '../../activity/scores/schema.ts'
import type { Scores } from '../../activity/scores/scores.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import type { Slice } from '../../base/http/shared-slice.ts'
import { isObject, parsedJson } from '../../base/json-object.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { attempt } from '../kit.ts'
import { inBatches, inParallel } from '../traces/groups.ts'
import type { BatchScan } from './batch-scan.ts'
import { observationTaskIds, traceIdOf } from './ids.ts'
import type { LangfuseTraces } from './traces.ts'
import { eventIdOf, type ScoreEvent } from './validate.ts'

/** Stores the scores of a batch. */
export interface ScoreWriter {
  /**
   * @param errors gets those of events that were not stored, by their place in the batch
   * @throws ApiError UNAVAILABLE: nothing is lost if the batch is sent again
   */
  store(caller: Caller, scores: ScoresOfBatch, errors: Errors): Promise<void>
}

interface ScoresOfBatch {
  readonly scan: BatchScan
  readonly events: readonly ScoreEvent[]
  readonly slice: Slice
}

interface ScoreWriterDeps {
  readonly scores: Pick<Scores, 'add'>
  readonly traces: Pick<LangfuseTraces, 'runOf'>
}

/** A score is built, unlike other bodies. */
export const SCORE_BYTES_MAX = 256 * 1024
const SCORES_AT_ONCE_MAX = 500

/** A score whose run is looked up. */
interface Read {
  readonly index: number
  readonly body: Body
}

export function createScoreWriter({ scores, traces }: ScoreWriterDeps): ScoreWriter {
  /** Stores scores of any traces at once. */
  async function storeAll(caller: Caller, scan: BatchScan, read: readonly Read[], errors: Errors): Promise<void> {
    const ready: { readonly index: number; readonly score: NewScore }[] = []
    await inParallel(read, ({ index, body }) =>
      attempt(
        async () => {
          const { runId } = await traces.runOf(caller, traceIdOf(body.traceId))
          ready.push({ index, score: toScore(body, runId, caller.workspaceId, eventIdOf(scan, index)) })
        },
        (refused) => errors.set(index, refused),
      ),
    )
    if (ready.length === 0) return
    ready.sort((one, other) => one.index - other.index)
    const options = { partial: true, mint: undefined }
    const { rejected = [] } = await scores.add(
      caller,
      ready.map(({ score }) => score),
      options,
    )
    for (const { index, message } of rejected) {
      errors.set(ready[index].index, new ApiError('VALIDATION_ERROR', `body: ${message}`))
    }
  }

  return {
    async store(caller, { scan, events, slice }, errors) {
      for (const part of inBatches(events, SCORES_AT_ONCE_MAX)) {
        const read: Read[] = []
        for (const { index } of part) {
          await attempt(
            async () => void read.push({ index, body: bodyOf(scan, index) }),
            (refused) => errors.set(index, refused),
          )
          if (slice.isOver) await slice.yield()
        }
        await storeAll(caller, scan, read, errors)
      }
    },
  }
}

/** Errors of events, by their place in the batch. */
type Errors = Map<number, ApiError>

type Body = Record<string, unknown> & { readonly traceId: string }

function bodyOf(scan: BatchScan, index: number): Body {
  const place = scan.body(index)
  const bytes = scan.end(place) - scan.start(place)
  if (bytes > SCORE_BYTES_MAX) {
    throw new ApiError('PAYLOAD_TOO_LARGE', `body: a score may have ${SCORE_BYTES_MAX} bytes; got ${bytes}`)
  }
  return checkedBody(parsedJson(scan.text.toString('utf8', scan.start(place), scan.end(place))))
}

/** @throws ApiError VALIDATION_ERROR for a score of no trace */
function checkedBody(body: unknown): Body {
  if (!isObject(body)) throw invalid('body', 'expected an object')
  const { traceId } = body
  if (
    typeof traceId !== 'string' ||
    traceId === '' ||
    traceId.length > 255 ||
    traceId.includes('\0') ||
    !traceId.isWellFormed()
  ) {
    throw invalid('body.traceId', 'required: a score here is of a trace, or of an observation in it')
  }
  return body as Body
}

/** @throws ApiError VALIDATION_ERROR naming the member */
function toScore(body: Body, runId: string, workspaceId: string, otherwiseId: string): NewScore {
  const { id, observationId, name, value, comment, metadata, dataType, environment } = body
  const verdict =
    typeof value === 'string'
      ? { [dataType === 'TEXT' ? 'text' : 'label']: value }
      : dataType === 'BOOLEAN' && typeof value === 'number'
        ? { value: value !== 0 }
        : { value }
  const score = {
    run_id: runId,
    id: id ?? otherwiseId,
    ...(typeof observationId === 'string' && {
      task_id: observationTaskIds(workspaceId, traceIdOf(body.traceId))(observationId),
    }),
    name,
    ...verdict,
    ...(comment !== null && comment !== undefined && { comment }),
    ...metadataOf(metadata, environment),
  }
  const [problem] = scoreProblems(score)
  if (problem !== undefined) throw invalid(`body.${problem.param}`, problem.message)
  return score as NewScore
}

function metadataOf(metadata: unknown, environment: unknown): { metadata?: RawJson } {
  const members = {
    ...(isObject(metadata) ? metadata : metadata === undefined || metadata === null ? {} : { value: metadata }),
    ...(typeof environment === 'string' && environment !== 'default' && { environment }),
  }
  return Object.keys(members).length === 0 ? {} : { metadata: RawJson.of(members) }
}
