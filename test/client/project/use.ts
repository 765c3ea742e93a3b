import { Client, type ReportError } from 'agent-run-service-client'

/** A program that uses the package: `package.slow.test.ts` compiles it under `strict` and runs it in Node. */

const errors: ReportError[] = []
const client = new Client({ onError: (error) => errors.push(error), whenFull: 'drop' })

const result: { answer: number } = await client.run({ input: { question: 'Why?' }, tags: ['package'] }, async (run) => {
  run.event('tool.call', { name: 'search' }, { level: 'debug' })
  const hits: string[] = await run.task('search', { input: { q: 'why' } }, async (task) => {
    await task.event('tool.result', { hits: 2 })
    return ['a', 'b']
  })
  return { answer: 40 + hits.length }
})
await client.flush()

const page = await client.request('GET', '/api/v1/runs', { query: { tag: 'package', limit: 1, cursor: undefined } })
const status: 'completed' | string | undefined = page.items[0]?.status
const { acknowledged, dropped } = client.stats

process.stdout.write(JSON.stringify({ result, status, acknowledged, dropped, errors: errors.length }))
