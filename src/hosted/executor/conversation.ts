import type { RawJson } from '../../base/raw-json.ts'
import type { ModelMessage } from '../../outbound/model/model.ts'
import type { RunProgress } from '../run/run.ts'

/** The messages for the model: the prompt, the earlier conversation, and everything the run has done. */
export function conversationOf({ run, history, steps, calls }: RunProgress): ModelMessage[] {
  const { system, user, history: given } = run.plan
  const messages: ModelMessage[] = [
    { role: 'system', content: system },
    ...given,
    ...history,
    { role: 'user', content: user },
  ]
  for (const { step, content, toolCalls, extra, remark } of steps) {
    messages.push({
      role: 'assistant',
      content,
      ...(toolCalls.length > 0 && { toolCalls }),
      ...(extra !== undefined && { extra }),
    })
    for (const call of calls) {
      if (call.step === step)
        messages.push({ role: 'tool', toolCallId: call.toolCallId, content: contentOf(call.output) })
    }
    if (remark !== null) messages.push({ role: 'user', content: remark })
  }
  return messages
}

/** A string as it is, any other value as JSON. */
function contentOf(output: RawJson | null): string {
  if (output === null) return ''
  const value = output.text.startsWith('"') ? output.parse() : output.text
  return value as string
}
