import {
  type AnyLoopCase,
  hardObjects,
  type LoopCase,
  type LoopContext,
  listOf,
  MIB,
  membersOf,
  sending,
} from './loop-case.ts'

const BODY_BYTES = 10 * MIB
const SCORES_MAX = 5_000
const METADATA_BYTES = 512 * 1024
const SCORES = '/api/ingest/v1/scores'

/** Scores (docs/scores.md). */
export function scoreCases({ runId, service }: LoopContext): AnyLoopCase[] {
  const salt = () => Bun.randomUUIDv7()
  const given = `"run_id":"${runId}","name":"n","value":1`
  const many = (score: (n: number) => string) => () => Array.from({ length: SCORES_MAX }, (_, n) => score(n)).join()
  const call = (name: string, scores: () => string, path = SCORES, status?: number): LoopCase => ({
    name,
    request: () => sending('POST', path, `{"scores":[${scores()}]}`),
    ...(status !== undefined && { status }),
  })
  const partial = `${SCORES}?partial=true`
  const small = hardObjects(Math.floor(BODY_BYTES / SCORES_MAX) - 200)
  return [
    ...Object.entries(small).map(([name, metadata]) =>
      call(
        `5,000 scores, ${name}`,
        many(() => `{${given},"metadata":${metadata}}`),
      ),
    ),
    ...Object.entries(hardObjects(METADATA_BYTES)).map(([name, metadata]) =>
      call(`19 large scores, ${name}`, () => Array(19).fill(`{${given},"metadata":${metadata}}`).join()),
    ),
    ...Object.entries(hardObjects(BODY_BYTES - 200)).map(([name, metadata]) =>
      call(`metadata of 10 MiB, ${name}`, () => `{${given},"metadata":${metadata}}`, partial),
    ),
    call('5,000 ids', () => {
      const own = salt()
      return many((n) => `{${given},"id":"${own}${n}"}`)()
    }),
    call('5,000 escaped ids', () => {
      const own = '\\u0061'.repeat(200)
      return many((n) => `{${given},"id":"${own}${n}"}`)()
    }),
    call(
      '5,000 equal ids',
      many((n) => `{"run_id":"${runId}","name":"n","value":${n},"id":"same"}`),
    ),
    call(
      '5,000 escaped texts',
      many(() => `{${given},"text":"${'\\u00e9\\"'.repeat(240)}"}`),
    ),
    call('long escaped texts', () =>
      Array(16)
        .fill(`{${given},"text":"${'\\u00e9'.repeat(100_000)}"}`)
        .join(),
    ),
    call('long texts', () =>
      Array(50)
        .fill(`{${given},"text":"${'\u{1F600}'.repeat(50_000)}"}`)
        .join(),
    ),
    call('an endless text', () => `{${given},"text":"${'\\u00e9\\"'.repeat(BODY_BYTES / 8 - 100)}"}`, SCORES, 400),
    call(
      'an endless value',
      () => `{"run_id":"${runId}","name":"n","value":${'1'.repeat(BODY_BYTES - 200)}}`,
      SCORES,
      400,
    ),
    call(
      'values of many digits',
      many(() => `{"run_id":"${runId}","name":"n","value":0.${'123456789'.repeat(40)}}`),
    ),
    call(
      '5,000 runs that do not exist',
      many(() => `{"run_id":"${salt()}","name":"n","value":1}`),
      partial,
    ),
    call(
      '5,000 invalid scores, partial',
      many(() => `{${given},"${'x'.repeat(1_900)}":0}`),
      partial,
    ),
    call(
      '5,000 invalid sources, partial',
      many(() => `{${given},"source":"${'\\u0061'.repeat(310)}"}`),
      partial,
    ),
    call(
      '5,000 invalid times, partial',
      many(() => `{${given},"created_at":"${'\\u0061'.repeat(60)}"}`),
      partial,
    ),
    call('members of a score', () => `{${given},${membersOf(BODY_BYTES - 300)}}`, partial),
    call('repeated members of a score', () => `{${given},${listOf('"id":"\\u0061"', BODY_BYTES - 300)}}`, SCORES, 400),
    call('tiny scores above the limit', () => listOf('{}', BODY_BYTES - 100), partial, 400),
    call('spaces', () => `{${given}}${'\n'.repeat(BODY_BYTES - 300)}`),
    call('a mistake at the end', () => `{${given}}${'\n'.repeat(BODY_BYTES - 300)}!`, SCORES, 400),
    ...Object.entries(hardObjects(METADATA_BYTES)).map(
      ([name, metadata]): AnyLoopCase => ({
        name: `metadata, ${name}`,
        route: 'POST /api/v1/runs/{run_id}/scores',
        async run() {
          const body = `{"name":"n","value":1,"metadata":${metadata}}`
          const { status } = await service.api('POST', `/api/v1/runs/${runId}/scores`, body)
          return { sent: body.length, status }
        },
      }),
    ),
    {
      name: 'a page of long texts',
      route: 'GET /api/v1/runs/{run_id}/scores',
      async run() {
        const { status } = await service.api('GET', `/api/v1/runs/${runId}/scores?limit=200`)
        return { sent: 0, status }
      },
    },
  ]
}
