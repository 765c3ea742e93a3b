import type { Random } from '../random.ts'
import { llm, type Model, type Profile, type RunPlan, type Step, type TaskPlan } from './plan.ts'

const MODEL: Model = {
  provider: 'anthropic',
  name: 'claude-sonnet-4-5',
  inputPrice: 3,
  outputPrice: 15,
  typicalMs: 1_400,
}

const ISSUES = [
  { title: 'Pagination skips an item when two rows share a timestamp', files: ['src/list.ts', 'test/list.test.ts'] },
  { title: 'Upload fails for names with an emoji in them 🚀', files: ['src/upload.ts'] },
  { title: 'Race between two workers that claim the same job', files: ['src/queue/claim.ts', 'src/queue/lease.ts'] },
  { title: 'Dark mode flickers on first load', files: ['web/theme.css', 'web/theme.ts'] },
] as const

const REPOSITORIES = ['acme/storefront', 'acme/billing', 'acme/mobile', 'acme/infra']

/** Fixes issues of a repository: reads, edits, runs the tests until they pass or it gives up. */
export const coding: Profile = {
  name: 'coding',
  description: 'Takes issues of a repository, edits the code and runs its tests.',
  choosesRunIds: false,
  plan(random): RunPlan {
    const issue = random.pick(ISSUES)
    const repository = random.pick(REPOSITORIES)
    const number = random.int(100, 4_000)
    const needsResearch = random.chance(0.2)
    return {
      triggerType: random.chance(0.7) ? 'webhook' : 'manual',
      input: { repository, issue: number, title: issue.title },
      externalRunId: `${repository}#${number}`,
      tags: ['coding', `repo:${repository}`],
      metadata: { sdk: 'code-agent/0.9.0', commit: random.int(1e9, 9e9).toString(16) },
      tasks: [
        read(random, issue.files, needsResearch),
        edit(random, issue.files),
        test(random, random.chance(0.12)),
        { name: 'update the changelog', input: {}, steps: [], output: {}, skipped: true },
      ],
      output: { pull_request: random.int(100, 4_000), files_changed: issue.files.length, tests: 'passed' },
    }
  },
}

function read(random: Random, files: readonly string[], needsResearch: boolean): TaskPlan {
  const steps: Step[] = [llm(random, MODEL, 'tool_calls')]
  for (const path of files) {
    const output = { lines: random.int(40, 900) }
    steps.push({ kind: 'tool', ms: random.latencyMs(15), tool: 'read_file', input: { path }, output })
  }
  if (needsResearch) steps.push({ kind: 'delegate', to: 'research', seed: random.int(0, 2 ** 32 - 1) })
  steps.push(llm(random, MODEL, 'stop', 4))
  return { name: 'understand the issue', input: { files }, steps, output: { plan: `${files.length} files to change` } }
}

function edit(random: Random, files: readonly string[]): TaskPlan {
  const steps = files.flatMap((path): Step[] => [
    llm(random, MODEL, 'tool_calls', 5),
    {
      kind: 'tool',
      ms: random.latencyMs(20),
      tool: 'edit_file',
      input: { path, hunks: random.int(1, 6) },
      output: { added: random.int(2, 60), removed: random.int(0, 30) },
    },
  ])
  return { name: 'edit the code', input: { files }, steps, output: { edited: files.length } }
}

function test(random: Random, fails: boolean): TaskPlan {
  const input = { command: 'bun test' }
  const run = (failed: number): Step => ({
    kind: 'tool',
    ms: random.latencyMs(1_200),
    tool: 'run_tests',
    input,
    output: { passed: random.int(80, 400), failed },
    ...(failed > 0 && { error: `${failed} tests failed` }),
  })
  const steps: Step[] = []
  if (fails || random.chance(0.3)) steps.push(run(random.int(1, 4)), llm(random, MODEL, 'tool_calls', 6))
  steps.push(run(fails ? random.int(1, 4) : 0))
  return {
    name: 'run the tests',
    input,
    steps,
    output: { green: true },
    ...(fails && { failure: { message: 'the tests still fail', detail: { reason: 'tests_failed', attempts: 2 } } }),
  }
}
