import type { Random } from '../support/random.ts'

/** A JSON Schema, or any part of an OpenAPI document. */
export type Json = { readonly [key: string]: unknown }

const TEXTS = [
  '',
  ' ',
  '0',
  '-1',
  '1e21',
  '1e400',
  'NaN',
  'null',
  'true',
  '[]',
  '{}',
  '../../../etc/passwd',
  '%00',
  '\u0000',
  '\ud800',
  "' OR 1=1 --",
  '{{A}}',
  '💥',
  '9007199254740993',
  '99999999999999999999999999',
  '2026-13-45T99:99:99Z',
  '0000-00-00T00:00:00Z',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'AAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  '__proto__',
  'constructor',
]

/** Text that has broken services before. */
export function hostileText(random: Random): string {
  if (random.bool(0.1)) return random.pick(['a', 'é', '\\', '"', '💥']).repeat(random.int(1, 5_000))
  if (random.bool(0.1)) return Buffer.from(random.bytes(random.int(1, 40))).toString('latin1')
  return random.pick(TEXTS)
}

/** Any JSON value, of kinds that services do not expect. */
export function hostileValue(random: Random, depth = 0): unknown {
  const kind = random.int(0, depth > 4 ? 6 : 9)
  if (kind === 0) return null
  if (kind === 1) return random.bool()
  if (kind === 2) return random.pick([0, -0, -1, 1.5, 1e308, 2 ** 53, -(2 ** 63), 1e21, 5e-324])
  if (kind <= 5) return hostileText(random)
  if (kind === 6) return []
  if (kind === 7) return Array.from({ length: random.int(1, 5) }, () => hostileValue(random, depth + 1))
  return Object.fromEntries(
    Array.from({ length: random.int(0, 4) }, () => [hostileText(random), hostileValue(random, depth + 1)]),
  )
}

/**
 * A value of a schema, with each part replaced by a hostile one, left out, or joined by an unknown one with the
 * probability `rate`.
 *
 * @param known ids to use where the schema requires a UUID
 */
export function sampleOf(schema: Json, random: Random, rate = 0.2, known: readonly string[] = []): unknown {
  if (random.bool(rate)) return hostileValue(random)
  const inner = (each: unknown) => sampleOf(each as Json, random, rate, known)
  const choices = (schema.anyOf ?? schema.oneOf) as readonly Json[] | undefined
  if (choices !== undefined) return inner(random.pick(choices))
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return random.pick(schema.enum)
  const type = Array.isArray(schema.type) ? random.pick(schema.type) : schema.type
  switch (type) {
    case 'object':
      return objectOf(schema, random, rate, inner)
    case 'array':
      return Array.from({ length: random.int(0, 3) }, () => inner(schema.items ?? {}))
    case 'string':
      if (schema.format === 'uuid') return random.bool() && known.length > 0 ? random.pick(known) : crypto.randomUUID()
      if (schema.format === 'date-time') return new Date(random.int(0, 4e9) * 1000).toISOString()
      return random.pick(['a', 'name', 'select 1', 'https://example.com/x', '{{A}}'])
    case 'integer':
    case 'number':
      return random.int(-2, 300)
    case 'boolean':
      return random.bool()
    case 'null':
      return null
    default:
      return hostileValue(random)
  }
}

function objectOf(schema: Json, random: Random, rate: number, inner: (each: unknown) => unknown): Json {
  const made: Record<string, unknown> = {}
  const required = (schema.required ?? []) as readonly string[]
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Json)) {
    const isWanted = required.includes(name) ? !random.bool(rate / 2) : random.bool(0.4)
    if (isWanted) made[name] = inner(property)
  }
  if (random.bool(rate / 2)) made[hostileText(random)] = hostileValue(random)
  return made
}
