/** A validation error of the service, and the field that it names. */
export interface FieldProblem {
  /** Such as `tools[1].url`; empty if the message names no field. */
  readonly path: string
  readonly text: string
}

/** Splits `tools[1].url: expected …` as validation messages are written (docs/specification.md#validation-messages). */
export function fieldProblemOf(message: string): FieldProblem {
  const [, path = '', text = message] = /^([a-z_]+(?:\[[^\]]*\]|\.[\w$-]+)*): (.+)$/s.exec(message) ?? []
  return { path, text }
}

/** The part of a problem that is about a field or something in it; empty if it is not. */
export function problemAt(problem: FieldProblem | null, field: string): string {
  if (problem === null) return ''
  if (problem.path === field) return problem.text
  const rest = problem.path.slice(field.length)
  if (!problem.path.startsWith(field) || !/^[.[]/.test(rest)) return ''
  return `${rest.replace(/^\./, '')}: ${problem.text}`
}
