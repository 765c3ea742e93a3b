import type { ApiFailure } from './api.ts'

/** What a failure says about a field or something in it; empty if nothing. Of several mistakes, the first one. */
export function problemAt(failure: ApiFailure | null, field: string): string {
  const found = problemsOf(failure).find(({ param }) => isIn(param, field))
  if (found === undefined) return ''
  const rest = found.param.slice(field.length).replace(/^\./, '')
  return rest === '' ? found.message : `${rest}: ${found.message}`
}

/** What a failure says about anything but these fields; empty if nothing. */
export function problemBeside(failure: ApiFailure | null, fields: Iterable<string>): string {
  const known = [...fields]
  const all = problemsOf(failure)
  const others = all.filter(({ param }) => !known.some((field) => isIn(param, field)))
  if (failure === null || others.length === all.length) return failure?.message ?? ''
  return others.map(({ param, message }) => `${param}: ${message}`).join('; ')
}

function problemsOf(failure: ApiFailure | null) {
  if (failure === null) return []
  const { param = '', problems = [{ param, message: failure.message }] } = failure.about
  return problems
}

function isIn(param: string, field: string): boolean {
  return param === field || (param.startsWith(field) && /^[.[]/.test(param.slice(field.length)))
}
