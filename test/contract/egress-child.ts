import { parseEgressAllow } from '../../src/outbound/egress/allow-list.ts'
import { createEgress } from '../../src/outbound/egress/egress.ts'

/** A process with its own environment: prints the response to each URL in its arguments. */
const { fetch } = createEgress({ allow: parseEgressAllow('127.0.0.0/8'), resolve: async () => ['127.0.0.1'] })
for (const url of process.argv.slice(2)) {
  const output = await fetch(url).then(
    (answer) => answer.text(),
    (error: Error) => `${error.name}: ${error.message}`,
  )
  process.stdout.write(`${output}\n`)
}
process.exit()
