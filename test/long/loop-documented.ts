import { type Document, resolve } from '../openapi/document.ts'
import { type LoopCase, listOf, MIB, membersOf, sending } from './loop-case.ts'

/** An operation of the OpenAPI document. */
export interface Operation {
  readonly method: string
  /** `POST /api/v1/agents/{agent_id}/keys` */
  readonly route: string
  readonly pattern: RegExp
  readonly path: string
  readonly queryNames: readonly string[]
  readonly bodyNames: readonly string[] | undefined
}

export function operationsOf({ json, operations }: Document): Operation[] {
  return [...operations.values()].map(({ path, method, operation: { parameters = [], requestBody } }) => {
    const schema = requestBody?.content['application/json']?.schema
    return {
      method: method.toUpperCase(),
      route: `${method.toUpperCase()} ${path}`,
      path,
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
      queryNames: parameters.flatMap((each) => (each.in === 'query' ? [each.name] : [])),
      bodyNames: schema === undefined ? undefined : Object.keys(resolve(json, schema).properties ?? {}),
    }
  })
}

const BODY_BYTES = 10 * MIB
/** Of a request line with its headers. */
const HEAD_BYTES = 12 * 1024
const ID = '0198c0de-0000-7000-8000-000000000000'

/** Cases of every operation that follow from the document: bodies of the largest size, and parameters. */
export function documentedCases(operations: readonly Operation[]): LoopCase[] {
  return operations.flatMap((operation) => {
    const { method, path, queryNames, bodyNames } = operation
    const url = path.replaceAll(/\{\w+\}/g, ID)
    const cases: [string, () => ReturnType<typeof sending>][] = []
    if (queryNames.length > 0) {
      const each = Math.floor(HEAD_BYTES / queryNames.length)
      const long = queryNames.map((name) => `${name}=${'%22'.repeat(Math.floor((each - name.length) / 3))}`)
      const repeated = listOf(`${queryNames[0]}=1`, HEAD_BYTES).replaceAll(',', '&')
      cases.push(['long parameters', () => sending(method, `${url}?${long.join('&')}`)])
      cases.push(['repeated parameters', () => sending(method, `${url}?${repeated}`)])
    }
    if (/\{\w+\}/.test(path))
      cases.push(['long path', () => sending(method, path.replaceAll(/\{\w+\}/g, '%25'.repeat(2_000)))])
    // Also of a call that documents no body: it may be sent one.
    for (const [name, body] of bodyNames === undefined && method !== 'POST' ? [] : bodiesOf(bodyNames ?? []))
      cases.push([name, () => sending(method, url, body())])
    return cases.map(([name, request]) => ({ name, request, route: operation.route, status: 'any' as const }))
  })
}

function bodiesOf(names: readonly string[]): [string, () => string][] {
  const room = BODY_BYTES - 200
  return [
    ['unknown members', () => `{${membersOf(room)}}`],
    ['an unknown list of digits', () => `{"x":[${listOf('1', room)}]}`],
    ['an unknown list of lists', () => `{"x":[${listOf('[]', room)}]}`],
    ['a mistake at the end', () => `{"x":[${listOf('\n"\\n"', room)}]`],
    ...names.flatMap((name): [string, () => string][] => [
      [`${name}, a long text`, () => `{"${name}":"${'\\u00e9\\"'.repeat(room / 8)}"}`],
      [`${name}, many texts`, () => `{"${name}":[${listOf('"a"', room)}]}`],
      [`${name}, many objects`, () => `{"${name}":[${listOf('{"a":{}}', room)}]}`],
      [`${name}, many members`, () => `{"${name}":{${membersOf(room, '"a"')}}}`],
    ]),
  ]
}
