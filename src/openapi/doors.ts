/**
 * The ways in for programs that are already instrumented for something else, as text to paste. The start, the dashboard
 * and `/llms.txt` show the same texts, so this file must run in browsers.
 */

/** One way in. */
export interface Door {
  /** What the program uses today. */
  readonly name: string
  /** Where the text goes. */
  readonly where: string
  /** To be pasted as it is, if the key is known. */
  readonly text: string
  /** The language of the text, as in a fenced code block. */
  readonly language: 'sh' | 'ts' | 'json'
}

/** What the texts contain. */
interface DoorValues {
  /** The origin of the service, such as `http://127.0.0.1:3000`. */
  readonly url: string
  /** Undefined: the user fills in the parts marked with an ellipsis. */
  readonly key?: string | undefined
  /** The agent of an agent key. */
  readonly agentId?: string | null | undefined
}

/** The client library reports with the key of an agent only; the other ways in work with either kind of key. */
export function doors({ url, key = 'svc_ws_…', agentId = null }: DoorValues): readonly Door[] {
  const inEnvironment = 'in its environment'
  return [
    {
      name: 'OpenTelemetry',
      where: inEnvironment,
      language: 'sh',
      text: `export OTEL_EXPORTER_OTLP_ENDPOINT=${url}/otlp OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_HEADERS=x-api-key=${key}`,
    },
    {
      name: 'Langfuse SDK',
      where: inEnvironment,
      language: 'sh',
      // The first name is that of the current SDKs, the others those of earlier ones for JavaScript and Python.
      text: `export LANGFUSE_BASE_URL=${url} LANGFUSE_BASEURL=${url} LANGFUSE_HOST=${url}
export LANGFUSE_PUBLIC_KEY=pk-lf-any LANGFUSE_SECRET_KEY=${key}`,
    },
    {
      name: 'OpenAI Agents SDK',
      where: 'where the program starts',
      language: 'ts',
      text: `import { BatchTraceProcessor, OpenAITracingExporter, setTraceProcessors } from '@openai/agents'
setTraceProcessors([new BatchTraceProcessor(new OpenAITracingExporter({
  endpoint: '${url}/openai/v1/traces/ingest', apiKey: '${key}' }))])`,
    },
    {
      name: 'An assistant that speaks MCP',
      where: 'in its configuration',
      language: 'json',
      text: `{"mcpServers": {"agent-run-service": {"type": "http", "url": "${url}/mcp",
  "headers": {"Authorization": "Bearer ${key}"}}}}`,
    },
    {
      name: 'Our client for TypeScript and Python',
      where: `${inEnvironment}, with the key of an agent`,
      language: 'sh',
      text: `export AGENT_RUN_URL=${url} AGENT_RUN_AGENT_ID=${agentId ?? '…'}
export AGENT_RUN_KEY=${agentId === null ? 'svc_agent_…' : key}`,
    },
  ]
}
