/** The service, with short delays between the attempts of a delivery. Its variables are those of `main.ts`. */
import { createLog } from '../../src/base/log.ts'
import { createProgress } from '../../src/base/progress.ts'
import { parseConfig } from '../../src/service/config/config.ts'
import { startService } from '../../src/service/service.ts'

const config = parseConfig(process.env)
const service = await startService(config, {
  log: createLog(config.logLevel),
  progress: createProgress(() => {}),
  webhooks: {
    schedule: { delaysMs: Array.from({ length: 1_000 }, () => 50), disableAfterMs: 3_600_000 },
    timeoutMs: 300,
    intervalMs: 50,
  },
})
process.once('SIGTERM', async () => {
  await service.stop()
  process.exit(0)
})
process.stdout.write(`ready at ${service.url}\n`)
