import { note, type Profile, type RunPlan, type Step, task } from '../plan.ts'
import type { Random } from '../random.ts'
import { CLAUDE, Talk } from '../talk.ts'
import { type ReviewCase, TEXTS } from './texts.ts'

const { system, cases } = TEXTS.review

const FAILURE_RATE = 0.08
const CANCEL_RATE = 0.05

/** Reviews pull requests, file by file at the same time; a session for each request. */
export const review: Profile = {
  name: 'Code reviewer',
  description: 'Reviews pull requests: reads the change, checks each file, runs the tests, comments.',
  sender: 'client',
  share: 2,
  versions: [
    { release: '0.8.2', model: 'claude-3-7-sonnet', checks: ['correctness'] },
    { release: '0.9.0', model: 'claude-sonnet-4-5', checks: ['correctness', 'security'] },
    { release: '0.9.1', model: 'claude-sonnet-4-5', checks: ['correctness', 'security', 'accessibility'] },
  ],
  episode(random) {
    const each = random.pick(cases)
    const number = random.int(200, 4_800)
    const author = random.pick(TEXTS.people.colleagues)
    const roll = random.next()
    if (roll < FAILURE_RATE) return [plan(each, number, author, brokenReview(each, random))]
    if (roll < FAILURE_RATE + CANCEL_RATE) return [plan(each, number, author, superseded(each, random))]
    const first = plan(each, number, author, fullReview(each, random, each.verdict))
    if (each.second === undefined) return [first]
    return [
      first,
      plan(each, number, author, fullReview({ ...each, files: each.files.slice(0, 2) }, random, each.second)),
    ]
  },
}

function plan(each: ReviewCase, number: number, author: string, rest: Pick<RunPlan, 'steps' | 'outcome'>): RunPlan {
  const { repository, title } = each
  return {
    input: { repository, pull_request: number, title, author },
    triggerType: 'webhook',
    externalRunId: `${repository}#${number}`,
    sessionId: `${repository}#${number}`,
    externalUserId: author,
    tags: ['code-review', `repo:${repository.split('/')[1]}`],
    metadata: { release: '0.9.1', base: 'main', files: each.files.length },
    ...rest,
  }
}

function readChange({ repository, title, files }: ReviewCase, talk: Talk): Step {
  const changed = files.map(({ path, lines }) => ({ path, lines }))
  talk.user(`Review "${title}" in ${repository}.`)
  return task(
    'read the change',
    talk.uses({ tool: 'get_diff', args: { repository }, result: { files: changed }, typicalMs: 240 }),
    { output: { files: files.length } },
  )
}

function checkFile({ path, lines, finding }: ReviewCase['files'][number], random: Random): Step {
  const talk = new Talk(random, CLAUDE, system).user(`Check ${path}.`)
  const read = talk.uses({ tool: 'read_file', args: { path }, result: { lines }, typicalMs: 25 })
  const callers = talk.uses({
    tool: 'find_references',
    args: { path },
    result: { references: random.int(0, 14) },
    typicalMs: 180,
  })
  const answer = finding ?? 'Nothing to report.'
  return task(path, [...read, task('check the callers', callers), talk.says(answer)], {
    input: { path, lines },
    output: { finding: finding ?? null },
  })
}

function runTests(random: Random, failed: readonly string[]): Step {
  const passed = random.int(80, 420)
  const error = failed.length === 0 ? undefined : `${failed.length} tests failed: ${failed.join(', ')}`
  const level = error === undefined ? 'info' : 'error'
  const payload = { command: 'bun test', passed, failed: failed.length, ...(error !== undefined && { message: error }) }
  return task('run the tests', [note(level, 'tests.finished', payload, random.latencyMs(2_400))], {
    input: { command: 'bun test' },
    output: error === undefined ? { passed } : undefined,
    error,
  })
}

function fullReview(each: ReviewCase, random: Random, verdict: string): Pick<RunPlan, 'steps' | 'outcome'> {
  const talk = new Talk(random, CLAUDE, system)
  const read = readChange(each, talk)
  const findings = each.files.flatMap(({ path, finding }) => (finding === undefined ? [] : [{ path, finding }]))
  const steps: Step[] = [
    read,
    task('check each file', [{ kind: 'branches', branches: each.files.map((file) => [checkFile(file, random)]) }], {
      output: { findings: findings.length },
    }),
    runTests(random, []),
    task('write the review', [talk.says(verdict)]),
  ]
  return { steps, outcome: { status: 'completed', output: { review: verdict, findings } } }
}

function brokenReview(each: ReviewCase, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const talk = new Talk(random, CLAUDE, system)
  const failed = ['checkout keeps the basket', 'a retry captures once']
  const message = 'The tests fail on the base branch, too: nothing can be said about this change'
  const detail = { reason: 'base_branch_broken', failed_tests: failed, branch: 'main' }
  const steps: Step[] = [
    readChange(each, talk),
    runTests(random, failed),
    note('error', 'agent.gave_up', { message }),
    task('write the review', [], { isSkipped: true }),
  ]
  return { steps, outcome: { status: 'failed', message, detail } }
}

/** The author pushes again while the review is under way. */
function superseded(each: ReviewCase, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const talk = new Talk(random, CLAUDE, system)
  const [first] = each.files
  const steps = [readChange(each, talk), ...(first === undefined ? [] : [checkFile(first, random)])]
  return { steps, outcome: { status: 'cancelled', reason: 'the author has pushed again' } }
}
