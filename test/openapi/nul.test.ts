import { expect, test } from 'bun:test'
import { OPERATOR_TOKEN, startTestService } from '../support/service.ts'
import { readDocument, type Schema } from './document.ts'

/** Postgres stores no NUL, so it must be refused or kept out of text columns at every door. */

const NUL = 'a\0b'
const ID = '00000000-0000-7000-8000-000000000000'
const DEPTH_MAX = 6

test('NUL in every string of every operation is never a 500', async () => {
  const service = await startTestService({ RATE_LIMIT_QUERIES_PER_MINUTE: '0' })
  const { json, operations } = await readDocument(service)
  const problems: string[] = []
  for (const { path, method, operation } of operations.values()) {
    const parameters = operation.parameters ?? []
    const query = parameters
      .filter((each) => each.in === 'query')
      .map(({ name }) => `${name}=${encodeURIComponent(NUL)}`)
    const schema = operation.requestBody?.content['application/json']?.schema
    const bodies = schema === undefined ? [undefined] : [...variants(resolve(json, schema), json)]
    const key = operation.security?.some((each) => 'operatorToken' in each) ? OPERATOR_TOKEN : service.workspaceKey
    for (const place of [ID, encodeURIComponent(NUL)]) {
      const target = path.replaceAll(/\{\w+\}/g, place)
      for (const search of ['', ...query.map((each) => `?${each}`)]) {
        for (const body of search === '' ? bodies : bodies.slice(0, 1)) {
          const signal = AbortSignal.timeout(20_000)
          const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
          const text = body === undefined ? {} : { body: JSON.stringify(body) }
          const response = await fetch(`${service.url}${target}${search}`, {
            method: method.toUpperCase(),
            headers,
            signal,
            ...text,
          })
          if (response.status === 500)
            problems.push(`${method} ${target}${search} ${JSON.stringify(body)}: ${await response.text()}`)
          else await response.body?.cancel()
        }
      }
    }
  }
  expect(problems).toEqual([])
}, 120_000)

function resolve(json: Schema, schema: Schema): Schema {
  return schema?.$ref === undefined
    ? schema
    : schema.$ref
        .slice(2)
        .split('/')
        .reduce((at: Schema, name: string) => at[name], json)
}

/** A valid-looking value with one of its strings replaced each time; free-form objects hold NUL in a name and a value. */
function* variants(schema: Schema, json: Schema): Generator<Schema> {
  const plain = sample(schema, json, 0)
  for (const name of Object.keys(schema?.properties ?? {})) {
    const member = resolve(json, schema.properties[name])
    if (member?.properties !== undefined) for (const value of variants(member, json)) yield { ...plain, [name]: value }
    else yield { ...plain, [name]: poisoned(member, json) }
  }
}

function poisoned(schema: Schema, json: Schema): unknown {
  const one = resolve(json, schema?.anyOf?.[0] ?? schema)
  if (one?.type === 'array') {
    const item = resolve(json, one.items ?? {})
    return item?.properties === undefined ? [poisoned(item, json)] : [...variants(item, json)]
  }
  return one?.type === 'object' ? { [NUL]: NUL, deep: [{ [NUL]: NUL }] } : NUL
}

function sample(schema: Schema, json: Schema, depth: number): Schema {
  const one = resolve(json, schema?.anyOf?.[0] ?? schema)
  if (one?.enum !== undefined) return one.enum[0]
  if (one?.type === 'object' && depth < DEPTH_MAX) {
    const names: string[] = one.required ?? []
    return Object.fromEntries(names.map((name) => [name, sample(one.properties?.[name], json, depth + 1)]))
  }
  if (one?.type === 'array') return [sample(one.items, json, depth + 1)]
  if (one?.type === 'string') return one.format === 'uuid' ? ID : 'text'
  return one?.type === 'boolean' ? true : one?.type === 'object' ? {} : 1
}
