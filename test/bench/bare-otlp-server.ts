import { LogsData, TracesData } from '../support/otlp-proto.ts'

/**
 * Baseline for OpenTelemetry exports: decodes the protobuf with the code that protobufjs generates, and does nothing else.
 * Prints its port.
 */
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const type = request.url.endsWith('/logs') ? LogsData : TracesData
    type.decode(await request.bytes())
    return new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
  },
})
process.stdout.write(`${server.port}\n`)
