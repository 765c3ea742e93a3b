import { APIConnectionError, APIError } from 'openai'
import { shortened } from '../../base/code-points.ts'
import { ModelFailure } from './model.ts'

const MESSAGE_LENGTH_MAX = 600
/** Statuses other than 5xx after which a retry may succeed: timeout, lock conflict, too many requests. */
const TRANSIENT_STATUSES = [408, 409, 429]
/** Errors that a retry cannot fix, whatever the status. */
const PERMANENT_CODES = ['insufficient_quota', 'invalid_request_error', 'billing_hard_limit_reached']

/** The failure of one attempt: the message, and whether to retry. */
export class Fault extends Error {
  constructor(
    message: string,
    readonly details: {
      readonly status?: number | undefined
      readonly code?: string | undefined
      /** The same request may succeed later. */
      readonly isTransient?: boolean
      /** From the provider's Retry-After. */
      readonly retryAfterMs?: number | undefined
    } = {},
  ) {
    super(message)
  }
}

/** Why a request got no usable response. @param error thrown by the package */
export function unanswered(error: unknown): Fault {
  if (error instanceof APIConnectionError)
    return new Fault(`the model provider could not be reached: ${connectionProblem(error)}`, { isTransient: true })
  if (error instanceof APIError && error.status !== undefined) return faultOfStatus(error)
  return new Fault(`the request to the model provider failed: ${plainText(messageOf(error))}`)
}

/** The connection broke while the answer was being read. */
export function brokenAnswer(error: unknown): Fault {
  return new Fault(`the model provider's answer broke off: ${connectionProblem(error)}`, { isTransient: true })
}

/** An error that the provider reports in the body of a successful response. */
export function faultInBody(reported: unknown): Fault {
  const details = detailsOf(reported)
  const { status, code } = details
  const isTransient = !isPermanent(details) && (status === undefined || isTransientStatus(status))
  return new Fault(`the model provider reported: ${said(details)}`, { status, code, isTransient })
}

/** The failure for the caller; `attempts` is the number of requests made. */
export function modelFailureOf(fault: Fault, attempts: number, redact: (text: string) => string): ModelFailure {
  const times = attempts > 1 ? ` (asked ${attempts} times)` : ''
  const { status, code } = fault.details
  return new ModelFailure(`${shortened(redact(fault.message), MESSAGE_LENGTH_MAX)}${times}`, {
    status,
    code: code && redact(code),
  })
}

/** @param key replaced wherever it occurs in a text, also as part of JSON or a URL; undefined: replaces nothing */
export function createRedact(key: string | undefined): (text: string) => string {
  if (key === undefined || key === '') return (text) => text
  const forms = [...new Set([key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key)])]
  return (text) => forms.reduce((clean, form) => clean.replaceAll(form, '•••'), text)
}

/** The provider's text on one line, with HTML tags removed. */
export function plainText(text: string): string {
  const isPage = /^\s*<(!doctype|html|head|body|\?xml)/i.test(text)
  // A page may have megabytes; its message is near the top.
  const start = text.slice(0, 20 * MESSAGE_LENGTH_MAX)
  const words = isPage ? start.replace(/<(style|script)\b[\s\S]*?<\/\1>/gi, ' ').replace(/<[^>]*>/g, ' ') : start
  return words.replace(/\s+/g, ' ').trim()
}

function faultOfStatus(error: APIError): Fault {
  const status = error.status as number
  const details: Details = error.error === undefined ? { text: textOfStatus(error) } : detailsOf(error.error)
  const advice = error.headers?.get('x-should-retry')
  const isTransient = advice === 'true' || (advice !== 'false' && isTransientStatus(status) && !isPermanent(details))
  const retryAfterMs = retryAfter(error.headers)
  const { code } = details
  return new Fault(`the model provider answered ${status}: ${said(details)}`, {
    status,
    code,
    isTransient,
    retryAfterMs,
  })
}

interface Details {
  readonly text: string
  readonly code?: string | undefined
  readonly type?: string | undefined
  readonly status?: number | undefined
}

/** Reads the error formats of compatible servers. */
function detailsOf(reported: unknown): Details {
  if (typeof reported !== 'object' || reported === null) return { text: plainText(String(reported)) }
  const { message, detail, code, type, status } = reported as Record<string, unknown>
  const text = [message, detail].find((each) => typeof each === 'string' && each !== '') as string | undefined
  const number = [code, status].map(Number).find((each) => each >= 400 && each <= 599)
  return {
    text: plainText(text ?? JSON.stringify(reported)),
    code: typeof code === 'string' && code !== '' ? plainText(code).slice(0, 100) : undefined,
    type: typeof type === 'string' ? plainText(type).slice(0, 100) : undefined,
    status: number,
  }
}

function said({ text, code, type }: Details): string {
  const name = code ?? type
  return `${text === '' ? 'nothing more' : text}${name === undefined || text.includes(name) ? '' : ` (${name})`}`
}

/** The package puts the status before a body that is not JSON. */
function textOfStatus({ status, message }: APIError): string {
  const text = plainText(message.replace(`${status}`, ''))
  return text === 'status code (no body)' ? '' : text
}

function isTransientStatus(status: number): boolean {
  return status >= 500 || TRANSIENT_STATUSES.includes(status)
}

function isPermanent({ code, type }: Details): boolean {
  return [code, type].some((each) => each !== undefined && PERMANENT_CODES.includes(each))
}

/** Seconds or a date, or the milliseconds that OpenAI sends in addition. */
function retryAfter(headers: Headers | undefined): number | undefined {
  const ms = Number.parseFloat(headers?.get('retry-after-ms') ?? '')
  if (ms >= 0) return ms
  const text = headers?.get('retry-after') ?? ''
  const wait = /^[\d.]+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined
}

/**
 * The innermost error is the most specific. Bun puts its code before the message, and advice for developers after it.
 */
function connectionProblem(error: unknown): string {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { code } = each as { code?: unknown }
    if (typeof code !== 'string') continue
    const message = plainText(each.message)
      .replace(`${code}: `, '')
      .replace(/ For more information.*/, '')
    return `${message} (${code})`
  }
  return plainText(messageOf(error))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
