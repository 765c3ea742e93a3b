/**
 * The names under which instrumentations report what agents do, each list in order of preference: OpenTelemetry
 * (`gen_ai.*`), OpenInference (`llm.*`, `input.value`), the Vercel AI SDK (`ai.*`), Traceloop, Langfuse, and then the plain
 * names of payloads that people write themselves. `usage-names.ts` has those of tokens, cost and model.
 */

/** The input and output of a span: messages of a model, arguments and result of a tool, or other values. */
export const CONTENT = {
  input: [
    'gen_ai.input.messages',
    'gen_ai.tool.call.arguments',
    'input.value',
    'ai.prompt.messages',
    'ai.prompt',
    'ai.toolCall.args',
    'ai.value',
    'traceloop.entity.input',
    'langfuse.observation.input',
    'langfuse.trace.input',
    'gen_ai.prompt',
  ],
  output: [
    'gen_ai.output.messages',
    'gen_ai.tool.call.result',
    'output.value',
    'ai.response.text',
    'ai.response.object',
    'ai.response.toolCalls',
    'ai.toolCall.result',
    'traceloop.entity.output',
    'langfuse.observation.output',
    'langfuse.trace.output',
    'gen_ai.completion',
  ],
} as const

/**
 * Names of the messages of a model call in payloads of events. Programs that report requests and responses unchanged use
 * the names of OpenAI (`messages`, `choices`; `input`, `output`), Anthropic (`system`, `content`) and Gemini (`contents`,
 * `candidates`), often nested in `request` and `response`.
 */
export const MESSAGES = {
  system: [
    'gen_ai.system_instructions',
    'system',
    'system_prompt',
    'instructions',
    'request.system',
    'request.instructions',
    'systemInstruction',
    'request.systemInstruction',
  ],
  input: [
    'gen_ai.input.messages',
    'input.value',
    'ai.prompt.messages',
    'langfuse.observation.input',
    'messages',
    'input.messages',
    'request.messages',
    'request.input',
    'request.contents',
    'contents',
    'prompt',
    'input',
    'request',
  ],
  output: [
    'gen_ai.output.messages',
    'output.value',
    'langfuse.observation.output',
    'output.messages',
    'choices',
    'response.choices',
    'response.output',
    'response.content',
    'response.candidates',
    'candidates',
    'content',
    'output',
    'response',
    'message',
    'completion',
  ],
  /** A prompt that is only text. */
  prompt: [
    'ai.prompt',
    'gen_ai.prompt',
    'prompt',
    'request.prompt',
    'request.input',
    'input.value',
    'input',
    'question',
  ],
  /** An answer that is only text, or only calls of tools. */
  text: [
    'ai.response.text',
    'response.text',
    'response.output_text',
    'gen_ai.completion',
    'completion',
    'output.value',
    'output_text',
    'output',
    'response',
    'answer',
    'text',
    'content',
    'message',
  ],
  calls: ['ai.response.toolCalls', 'tool_calls', 'response.tool_calls'],
} as const

/** What contains the messages of a request or a response. */
export const MESSAGE_LISTS = ['messages', 'contents', 'choices', 'candidates', 'generations'] as const

/** Members of an input and of an output that hold text written or read by a person, in order of preference. */
export const TEXTS = {
  input: ['message', 'prompt', 'question', 'query', 'text', 'content', 'input', 'task', 'topic', 'value'],
  output: ['text', 'message', 'answer', 'reply', 'response', 'output', 'content', 'result', 'summary', 'value'],
} as const

/** Messages that are spread over an attribute for each part, as in `gen_ai.prompt.0.role`. */
export const SPREAD_MESSAGES = {
  input: ['gen_ai.prompt', 'llm.input_messages'],
  output: ['gen_ai.completion', 'llm.output_messages'],
} as const

export const FINISH_REASON = [
  'gen_ai.response.finish_reasons',
  'ai.response.finishReason',
  'gen_ai.completion.0.finish_reason',
  'finish_reason',
  'stop_reason',
] as const

export const LATENCY_MS = ['latency_ms', 'duration_ms'] as const

/** A call of a tool. */
export const TOOL = {
  name: ['gen_ai.tool.name', 'tool.name', 'tool', 'name'],
  callId: ['gen_ai.tool.call.id', 'tool_call_id', 'tool_call.id'],
  arguments: ['gen_ai.tool.call.arguments', 'ai.toolCall.args', 'input', 'arguments', 'args'],
  result: ['gen_ai.tool.call.result', 'ai.toolCall.result', 'output', 'result'],
} as const

/** What went wrong, in the attributes of a span or of its exception event. */
export const ERROR = [
  'exception.message',
  'error.message',
  'langfuse.observation.status_message',
  'exception.type',
  'error.type',
] as const

/** The agent, session and end user of a span, and its tags. */
export const AGENT = ['gen_ai.agent.name', 'agent.name', 'langfuse.trace.name'] as const
/** What names the agent of a trace whose service has no name of its own, on any of its spans or the resource. */
export const AGENT_WITHOUT_SERVICE = [...AGENT, 'ai.telemetry.functionId', 'openinference.project.name'] as const
export const SESSION = [
  'session.id',
  'gen_ai.conversation.id',
  'ai.telemetry.metadata.sessionId',
  'ai.settings.context.sessionId',
  'langfuse.session.id',
  'traceloop.association.properties.session_id',
  'traceloop.association.properties.sessionId',
  'langsmith.metadata.session_id',
  'langsmith.metadata.thread_id',
  'langsmith.metadata.conversation_id',
  'lmnr.association.properties.session_id',
  'conversation.id',
] as const
export const USER = [
  'user.id',
  'enduser.id',
  'ai.telemetry.metadata.userId',
  'ai.settings.context.userId',
  'langfuse.user.id',
  'traceloop.association.properties.user_id',
  'traceloop.association.properties.userId',
  'langsmith.metadata.user_id',
  'lmnr.association.properties.user_id',
] as const
export const TAGS = [
  'langfuse.trace.tags',
  'tag.tags',
  'ai.telemetry.metadata.tags',
  'ai.settings.context.tags',
  'lmnr.association.properties.tags',
] as const
export const COMMA_SEPARATED_TAGS = 'langsmith.span.tags'
