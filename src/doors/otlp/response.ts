import { type ApiError, type ErrorCode, STATUS_OF } from '../../base/errors.ts'

/** Responses of OTLP/HTTP: an export response, or a `google.rpc.Status`, in the encoding of the request. */

type Encoding = 'protobuf' | 'json'

const CONTENT_TYPES: Record<Encoding, string> = { protobuf: 'application/x-protobuf', json: 'application/json' }

/** The encoding that the Content-Type names; null for any other. */
export function encodingOf({ headers }: Request): Encoding | null {
  const type = (headers.get('content-type') ?? '').split(';')[0].trim().toLowerCase()
  if (type === 'application/x-protobuf' || type === 'application/protobuf') return 'protobuf'
  return type === 'application/json' ? 'json' : null
}

/** What was not stored, with the field name of the signal. */
export interface PartialSuccess {
  readonly field: 'rejectedSpans' | 'rejectedLogRecords' | 'rejectedDataPoints'
  readonly rejected: number
  /** Empty if nothing was rejected: then the answer has no `partial_success`. */
  readonly message: string
}

export function exportResponse(encoding: Encoding, { field, rejected, message }: PartialSuccess): Response {
  const isWhole = rejected === 0 && message === ''
  if (encoding === 'json') {
    const partialSuccess = { [field]: `${rejected}`, errorMessage: message }
    return respond(encoding, JSON.stringify(isWhole ? {} : { partialSuccess }))
  }
  if (isWhole) return respond(encoding, new Uint8Array(0))
  const partial = Buffer.concat([varintField(1, rejected), textField(2, message)])
  return respond(encoding, delimited(1, partial))
}

/** Codes of `google.rpc.Code`. */
const RPC_CODES: Record<ErrorCode, number> = {
  VALIDATION_ERROR: 3,
  UNAUTHENTICATED: 16,
  FORBIDDEN: 7,
  NOT_FOUND: 5,
  METHOD_NOT_ALLOWED: 12,
  CONFLICT: 6,
  PAYLOAD_TOO_LARGE: 8,
  RATE_LIMITED: 8,
  INTERNAL: 13,
  UNAVAILABLE: 14,
}

export function errorResponse(encoding: Encoding, { code, message }: ApiError): Response {
  const number = RPC_CODES[code]
  const body =
    encoding === 'json'
      ? JSON.stringify({ code: number, message })
      : Buffer.concat([varintField(1, number), textField(2, message)])
  return respond(encoding, body, STATUS_OF[code])
}

function respond(encoding: Encoding, body: string | Uint8Array, status = 200): Response {
  return new Response(body as BodyInit, { status, headers: { 'content-type': CONTENT_TYPES[encoding] } })
}

function varintField(field: number, value: number): Buffer {
  return Buffer.from([field << 3, ...varint(value)])
}

function textField(field: number, text: string): Buffer {
  return delimited(field, Buffer.from(text))
}

function delimited(field: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...varint(bytes.length)]), bytes])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80)
  return [...bytes, value]
}
