import type { LogLevel } from './config.ts'

/** Structured log: one JSON object a line on standard error. Never give it a key, a body or a secret. */
export interface Log {
  debug(message: string, fields?: object): void
  info(message: string, fields?: object): void
  warn(message: string, fields?: object): void
  error(message: string, fields?: object): void
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

export function createLog(level: LogLevel, write: (line: string) => void = (line) => process.stderr.write(line)): Log {
  const threshold = LEVELS.indexOf(level)
  const at = (name: Exclude<LogLevel, 'silent'>) => {
    if (LEVELS.indexOf(name) < threshold) return () => {}
    return (message: string, fields: object = {}) =>
      write(`${JSON.stringify({ time: new Date().toISOString(), level: name, message, ...plain(fields) })}\n`)
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Errors do not survive JSON.stringify; their message, code and stack are what a log reader needs. */
function plain(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? { message: value.message, stack: value.stack, cause: String(value.cause ?? '') } : value,
    ]),
  )
}
