import { firstError } from './errors.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Structured log on standard error. Never give it a key, a body or a secret. */
export interface Log {
  debug(message: string, fields?: object): void
  info(message: string, fields?: object): void
  warn(message: string, fields?: object): void
  error(message: string, fields?: object): void
}

/** `json`: one JSON object a line, for machines; `text`: for a person at a terminal. */
type LogLayout = 'json' | 'text'

export function createLog(
  level: LogLevel,
  write: (line: string) => void = (line) => process.stderr.write(line),
  layout: LogLayout = 'json',
): Log {
  const threshold = LOG_LEVELS.indexOf(level)
  const lineOf = layout === 'json' ? jsonLine : textLine
  const at = (name: Exclude<LogLevel, 'silent'>) => {
    if (LOG_LEVELS.indexOf(name) < threshold) return () => {}
    return (message: string, fields: object = {}) => write(lineOf(name, message, fields))
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** The same log, with further fields in every line. */
export function withFields(log: Log, more: object): Log {
  const at = (name: keyof Log) => (message: string, fields?: object) => log[name](message, { ...more, ...fields })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function jsonLine(level: string, message: string, fields: object): string {
  return `${JSON.stringify({ time: new Date().toISOString(), level, message, ...plain(fields) })}\n`
}

/** Errors do not survive JSON.stringify; their message, code and stack are what a log reader needs. */
function plain(fields: object): object {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainError(value) ?? value]))
}

function plainError(value: unknown): object | undefined {
  const first = firstError(value)
  if (!(first instanceof Error)) return undefined
  const plain = { message: first.message, stack: first.stack, cause: String(first.cause ?? '') }
  return value instanceof SuppressedError ? { ...plain, while_closing: String(value.error) } : plain
}

/** Time, level, message, and `name=value` for each field; stacks of errors on the lines below. */
function textLine(level: string, message: string, fields: object): string {
  const time = new Date().toISOString().slice(11, 23)
  const shown = Object.entries(fields).map(([name, value]) => ` ${name}=${textOf(value)}`)
  const stacks = Object.values(fields).flatMap((value) =>
    value instanceof Error ? stackOf(firstError(value) as Error) : [],
  )
  const line = `${time} ${level.padEnd(5)} ${printable(message)}${shown.join('')}`
  return [line, ...stacks].map((each) => `${each}\n`).join('')
}

function textOf(value: unknown): string {
  const first = firstError(value)
  const text = first instanceof Error ? first.message : value
  return typeof text === 'string' && /^[\w.:/@+-]+$/.test(text) ? text : String(JSON.stringify(text))
}

function stackOf({ stack }: Error): string[] {
  const frames = (stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  return frames.map((line) => `    ${printable(line.trim())}`)
}

/** Escapes control characters as JSON does, so that untrusted text cannot control the terminal. */
function printable(text: string): string {
  return JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')
}
