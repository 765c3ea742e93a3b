import { attributesOf, inProtobuf, randomHex, START_MS, span, tracesOf } from './otlp.ts'
import type { Random } from './random.ts'

/** Runs of agents as OpenTelemetry records them, made up, with what they should add up to. */

/** A sum of these is exact in binary. */
export const COST_USD = 0.25

export interface RecordedRun {
  readonly traceId: string
  readonly spans: readonly object[]
  readonly failed: boolean
  readonly inputTokens: number
  readonly outputTokens: number
  readonly modelCalls: number
}

/** An agent that calls a model and tools in turns; the outer span repeats the tokens of its calls, as some senders do. */
export function recordedRun(random: Random): RecordedRun {
  const traceId = randomHex(16)
  const rootId = randomHex(8)
  const failed = random.bool(0.2)
  const sums = { inputTokens: 0, outputTokens: 0, modelCalls: random.int(1, 3) }
  const steps = Array.from({ length: sums.modelCalls }, (_, step) => {
    const [input, output] = [random.int(1, 2_000), random.int(1, 300)]
    sums.inputTokens += input
    sums.outputTokens += output
    const model = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'a-model',
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': output,
      cost_usd: COST_USD,
      'gen_ai.input.messages': `[{"role":"user","content":"Where is order ${step}?"}]`,
    }
    const tool = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'get_order' }
    return [
      span({ traceId, parentSpanId: rootId, name: 'chat a-model', attributes: attributesOf(model) }),
      span({ traceId, parentSpanId: rootId, name: 'execute_tool get_order', attributes: attributesOf(tool) }),
    ]
  })
  const outer = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.usage.input_tokens': sums.inputTokens,
    'gen_ai.usage.output_tokens': sums.outputTokens,
  }
  const root = span({
    traceId,
    spanId: rootId,
    name: 'invoke_agent',
    endTimeUnixNano: `${START_MS + random.int(1, 60_000)}000000`,
    attributes: attributesOf(outer),
    ...(failed && { status: { code: 2, message: 'gave up' } }),
  })
  return { traceId, spans: [...steps.flat(), root], failed, ...sums }
}

/** Exports in protobuf with so many of the spans each. */
export function exportsOf(spans: readonly object[], spansPerExport: number, service: string): Uint8Array[] {
  const exports: Uint8Array[] = []
  for (let at = 0; at < spans.length; at += spansPerExport) {
    exports.push(inProtobuf(tracesOf(spans.slice(at, at + spansPerExport), { 'service.name': service })))
  }
  return exports
}
