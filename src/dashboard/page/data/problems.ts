import type { ApiFailure } from './api.ts'

/** What a failure says about a field or something in it; empty if nothing. Of several mistakes, the first one. */
export function problemAt(failure: ApiFailure | null, field: string): string {
  if (failure === null) return ''
  const { param = '', problems = [{ param, message: failure.message }] } = failure.about
  for (const { param, message } of problems) {
    if (param === field) return message
    const rest = param.slice(field.length)
    if (param.startsWith(field) && /^[.[]/.test(rest)) return `${rest.replace(/^\./, '')}: ${message}`
  }
  return ''
}
