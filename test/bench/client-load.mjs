// One Node process that reports as fast as its client takes events: `node client-load.mjs <module of the client> <seconds> <runs>`,
// with AGENT_RUN_URL, AGENT_RUN_KEY and AGENT_RUN_AGENT_ID. Prints what it measured as JSON.
const [, , module, seconds, runCount] = process.argv
const { Client } = await import(module)

const SAMPLE_MS = 20
const BURST = 100
const text = 'The quick brown fox jumps over the lazy dog. '.repeat(2)

const client = new Client({ whenFull: 'wait', waitTimeoutMs: 60_000 })
const runs = Array.from({ length: Number(runCount) }, (_, i) => client.startRun({ input: { i } }))
await client.flush()

let residentMax = 0
const sampling = setInterval(() => {
  residentMax = Math.max(residentMax, process.memoryUsage.rss())
}, SAMPLE_MS)
const startedAt = performance.now()
const until = startedAt + Number(seconds) * 1000
const usage = process.cpuUsage()
let events = 0
while (performance.now() < until) {
  for (let i = 0; i < BURST; i++, events++) {
    await runs[events % runs.length].event('tool.call.finished', {
      'gen_ai.tool.name': 'search',
      input: { query: text, page: events },
      latency_ms: events % 1000,
    })
  }
}
const isComplete = await client.flush()
const elapsedSeconds = (performance.now() - startedAt) / 1000
clearInterval(sampling)
const { user, system } = process.cpuUsage(usage)
const { rejected, dropped } = client.stats
for (const run of runs) run.complete()
await client.close()
const measured = { perSecond: events / elapsedSeconds, microsPerEvent: (user + system) / events, residentMax }
process.stdout.write(JSON.stringify({ ...measured, isComplete: isComplete && rejected + dropped === 0 }))
