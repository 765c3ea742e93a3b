import { isObject } from '../../base/json-object.ts'
import { RETENTION_DAYS_MAX } from '../../base/limits.ts'
import { StartError } from '../../base/start-error.ts'
import { isWellFormedKey } from '../../tenants/keys/token.ts'

/** All problems of the environment, one per line. */
export class ConfigError extends StartError {
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
  }
}

type Bounds = readonly [fallback: number, min: number, max: number]

/** Reads variables and collects their problems, so that all are reported at once. */
export class ConfigReader {
  private readonly problems: string[] = []

  constructor(private readonly env: Readonly<Record<string, string | undefined>>) {}

  /** Adds a problem. @param what continues after the name of the variable */
  problem(name: string, what: string): void {
    this.problems.push(`${name} ${what}`)
  }

  /** @throws ConfigError with all problems, if there are any */
  finish(): void {
    if (this.problems.length > 0) throw new ConfigError(this.problems)
  }

  /** The trimmed value; undefined if it is empty or not set. */
  text(name: string): string | undefined {
    const value = this.env[name]?.trim()
    return value === '' ? undefined : value
  }

  /** A whole number within bounds. */
  integer(name: string, fallback: number, min: number, max: number): number {
    const text = this.text(name)
    if (text === undefined) return fallback
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    this.problem(name, `must be a whole number from ${min} to ${max}; got "${text}"`)
    return fallback
  }

  /**
   * A JSON object of whole numbers, such as `{"rows": 500}`. What it leaves out has its default.
   *
   * @param bounds default, least and greatest value of each member
   */
  integers<Name extends string>(name: string, bounds: Readonly<Record<Name, Bounds>>): Record<Name, number> {
    const given = this.parsed(name, parseObject) ?? {}
    const members = new Map(Object.entries<Bounds>(bounds))
    for (const key of Object.keys(given))
      if (!members.has(key)) this.problem(name, `has no member "${key}"; it has ${[...members.keys()].join(', ')}`)
    const values = [...members].map(([key, [fallback, min, max]]) => {
      const value = given[key] ?? fallback
      if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return [key, value]
      this.problem(`${name}.${key}`, `must be a whole number from ${min} to ${max}; got ${JSON.stringify(value)}`)
      return [key, fallback]
    })
    return Object.fromEntries(values)
  }

  /** Whole days; undefined unless it is set. */
  days(name: string): number | undefined {
    return this.text(name) === undefined ? undefined : this.integer(name, RETENTION_DAYS_MAX, 1, RETENTION_DAYS_MAX)
  }

  /** Milliseconds; null unless it is set. */
  secondsOrNever(name: string): number | null {
    return this.text(name) === undefined ? null : this.integer(name, 1, 1, 100 * 366 * 86_400) * 1000
  }

  /** A value that `parse` reads. @param parse throws an Error whose message continues after the name of the variable */
  parsed<T>(name: string, parse: (text: string) => T): T | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    try {
      return parse(text)
    } catch (error) {
      this.problem(name, (error as Error).message)
      return undefined
    }
  }

  /** One of the given values. */
  oneOf<T extends string>(name: string, values: readonly T[], fallback: T): T {
    const text = this.text(name)
    const value = text === undefined ? fallback : values.find((each) => each === text)
    if (value === undefined) this.problem(name, `must be one of ${values.join(', ')}; got "${text}"`)
    return value ?? fallback
  }

  /** A value of a given form. The problem does not repeat it: it may be a secret. */
  matching(name: string, pattern: RegExp, expected: string): string | undefined {
    const text = this.text(name)
    if (text !== undefined && !pattern.test(text)) this.problem(name, `must be ${expected}`)
    return text
  }

  /** One URL. The problem does not repeat it: it may contain a password. */
  url(name: string, protocols: readonly string[]): string | undefined {
    const text = this.text(name)
    if (text !== undefined && !protocols.includes(URL.parse(text)?.protocol ?? '')) {
      this.problem(name, `must be a URL that begins with ${protocols.map((each) => `${each}//`).join(' or ')}`)
    }
    return text
  }

  /** Comma-separated URLs. The problem does not repeat them: they may contain passwords. */
  urls(name: string, protocols: readonly string[]): string[] | undefined {
    const expected = `URLs that begin with ${protocols.map((each) => `${each}//`).join(' or ')}`
    return this.list(name, expected, (each) => protocols.includes(URL.parse(each)?.protocol ?? ''))
  }

  /** Comma-separated origins of web pages. */
  origins(name: string): string[] | undefined {
    const isOrigin = (each: string) => URL.parse(each)?.origin === each
    const normalized = (each: string) => each.toLowerCase().replace(/\/$/, '')
    return this.list(name, 'origins like https://app.example.com', isOrigin, normalized)
  }

  private list(
    name: string,
    expected: string,
    isValid: (each: string) => boolean,
    normalized: (each: string) => string = (each) => each,
  ): string[] | undefined {
    const values = this.text(name)
      ?.split(',')
      .map((each) => normalized(each.trim()))
    if (values?.every(isValid) === false) this.problem(name, `must be comma-separated ${expected}`)
    return values
  }

  /** A workspace key, with a valid checksum. */
  workspaceKey(name: string): string | undefined {
    const text = this.text(name)
    if (text !== undefined && isWellFormedKey(text) !== 'workspace') {
      this.problem(name, 'must be svc_ws_ followed by 43 base62 characters and their 6-character CRC-32 checksum')
    }
    return text
  }
}

/** @throws Error whose message continues after the name of the variable */
function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Reported below.
  }
  if (!isObject(value)) throw new Error('must be a JSON object of whole numbers')
  return value
}
