import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type CallToolResult, type ContentBlock, ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js'
import { shortened } from '../../base/code-points.ts'
import { parsedJson } from '../../base/json-object.ts'
import { EgressFailed, EgressRefused } from '../../outbound/egress/errors.ts'
import type { ToolOutcome } from './tool.ts'

/** Limit of a result for the model, in bytes; the rest is cut off, and the model is told so. */
const RESULT_BYTES_MAX = 256 * 1024
const ERROR_LENGTH_MAX = 4_000
/** Limit of the text that a server sends with a refusal; most of it is HTML. */
const REFUSAL_LENGTH_MAX = 200

/** Redacts secrets from a text. The text is cut afterwards, so that no secret is cut in two. */
type Redact = (text: string) => string

/**
 * A result for the model: the structured content if there is any, else the text. Images, audio and binary resources are
 * named with type and size, because the model cannot use their bytes.
 */
export function outcomeOf(result: CallToolResult, redact: Redact): ToolOutcome {
  const text = result.content.map(textOf).join('\n')
  if (result.isError === true)
    return { ok: false, error: shortened(redact(text), ERROR_LENGTH_MAX) || 'the tool failed without saying why' }
  if (result.structuredContent === undefined) return { ok: true, output: withinSize(redact(text)) }
  const json = JSON.stringify(result.structuredContent)
  const clean = redact(json)
  if (Buffer.byteLength(clean) > RESULT_BYTES_MAX) return { ok: true, output: withinSize(clean) }
  // Redacting can break JSON, when the secret is a number for instance.
  return { ok: true, output: clean === json ? result.structuredContent : (parsedJson(clean) ?? clean) }
}

/** What failed between this service and the server, in words for the model, the caller and the log. */
export function failureText(error: unknown, redact: Redact): string {
  if (error instanceof EgressRefused || error instanceof EgressFailed) return error.message
  if (error instanceof StreamableHTTPError) return refusalText(error, redact)
  if (error instanceof McpError) return protocolErrorText(error, redact)
  return 'the server sent something that is not MCP'
}

function refusalText({ code = 0, message }: StreamableHTTPError, redact: Redact): string {
  if (code === 401 || code === 403) return `the server refuses the credentials in the headers (HTTP ${code})`
  if (code <= 0) return 'the server answers with something that is not MCP (streamable HTTP)'
  const said = message.replace(/^Streamable HTTP error: (Error POSTing to endpoint: )?/, '').trim()
  const words = said === '' || said.startsWith('<') ? '' : `: ${shortened(redact(said), REFUSAL_LENGTH_MAX)}`
  return `the server answers HTTP ${code}${words}`
}

function protocolErrorText({ code, message }: McpError, redact: Redact): string {
  if (code === ErrorCode.RequestTimeout) return 'the server did not answer in time'
  const said = message.replace(/^(MCP error -?\d+: )+/, '')
  return code === ErrorCode.ConnectionClosed ? said : `the server says: ${shortened(redact(said), ERROR_LENGTH_MAX)}`
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type}, ${block.mimeType}, ${sizeOfBase64(block.data)} bytes, left out]`
    case 'resource_link':
      return `[link to ${block.uri}, ${block.name}${block.mimeType === undefined ? '' : `, ${block.mimeType}`}]`
    case 'resource': {
      const { resource } = block
      const title = `resource ${resource.uri}, ${resource.mimeType ?? 'type unknown'}`
      if ('text' in resource) return `[${title}]\n${resource.text}`
      return `[${title}, ${sizeOfBase64(resource.blob)} bytes, left out]`
    }
  }
}

function sizeOfBase64(text: string): number {
  let { length } = text
  while (text[length - 1] === '=') length--
  return Math.floor((length * 3) / 4)
}

function withinSize(text: string): string {
  const bytes = Buffer.byteLength(text)
  if (bytes <= RESULT_BYTES_MAX) return text
  const start = Buffer.from(text).subarray(0, RESULT_BYTES_MAX)
  // A character that the cut has split comes out as a replacement character.
  return `${start.toString().replace(/\ufffd$/, '')}\n[cut off: the result has ${bytes} bytes, this is its beginning]`
}
