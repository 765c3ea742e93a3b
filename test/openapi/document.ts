import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020'
import type { Answer } from '../support/api.ts'
import type { TestService } from '../support/service.ts'

/** Reads the OpenAPI document of a running service, and checks values against it. */

// biome-ignore lint/suspicious/noExplicitAny: a schema may hold anything; tests look into it freely.
export type Schema = any

export interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: Schema
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<
    Record<string, { readonly $ref?: string; readonly headers?: object; readonly content?: Schema }>
  >
}

/** An operation with its path and method. */
export interface Endpoint {
  readonly path: string
  readonly method: string
  readonly operation: Operation
}

export interface Document {
  readonly json: Schema
  readonly operations: ReadonlyMap<string, Endpoint>
}

/** What a call of an operation sends. */
export interface OperationCall {
  /** Values of the path parameters, in order. */
  readonly path?: readonly string[]
  readonly query?: string
  readonly body?: unknown
  readonly key?: string | null
  readonly headers?: Record<string, string>
}

export async function readDocument({ url }: Pick<TestService, 'url'>): Promise<Document> {
  const json: Schema = await (await fetch(`${url}/docs/json`)).json()
  const endpoints = Object.entries<Record<string, Operation>>(json.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  return { json, operations: new Map(endpoints.map((endpoint) => [endpoint.operation.operationId, endpoint])) }
}

/** The address of a call. @param values those of the path parameters, in order */
export function targetOf({ path }: Endpoint, values: readonly string[] = [], query = ''): string {
  const rest = [...values]
  return `${path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(rest.shift()!))}${query && `?${query}`}`
}

/** The schema that a reference names; any other schema itself. */
export function resolve(json: Schema, schema: Schema): Schema {
  if (schema?.$ref === undefined) return schema
  const names: string[] = schema.$ref.slice(2).split('/')
  return names.reduce((at: Schema, name) => at[name], json)
}

/** Calls `visit` with every schema of a part of the document, and the path to it. */
export function eachSchema(part: Schema, visit: (schema: Schema, path: string) => void, path = ''): void {
  if (typeof part !== 'object' || part === null) return
  if (!Array.isArray(part)) visit(part, path)
  for (const [name, member] of Object.entries(part)) {
    if (name === 'example' || name === 'examples' || name === 'default') continue
    eachSchema(member, visit, `${path}/${name}`)
  }
}

/**
 * Checks values against schemas of the document strictly: a member that no schema mentions is an error, unless the schema
 * allows additional members.
 */
export class Checker {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true })

  constructor({ json }: Document) {
    const strict = structuredClone(json)
    eachSchema(strict, (schema) => {
      if (schema.type === 'object' && schema.properties) schema.additionalProperties ??= false
    })
    this.ajv.addFormat('uuid', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    this.ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
    this.ajv.addSchema(strict, 'document')
  }

  /** @throws Error unless the operation documents the parameters of the query, and the body if it is JSON */
  request({ path, method, operation }: Endpoint, { query, body }: OperationCall): void {
    const names = (operation.parameters ?? []).flatMap((each) => (each.in === 'query' ? [each.name] : []))
    for (const name of new URLSearchParams(query).keys())
      if (!names.includes(name)) throw new Error(`${operation.operationId} has no parameter ${name}`)
    if (typeof body === 'object')
      this.check(body, 'paths', path, method, 'requestBody', 'content', 'application/json', 'schema')
  }

  /** @throws Error unless the operation documents the status of the answer, and its body matches */
  answer({ path, method, operation }: Endpoint, { status, headers, text }: Answer): void {
    const { operationId, responses } = operation
    const response = responses[status] ?? responses.default
    if (response === undefined) throw new Error(`${operationId} answers ${status}: ${text.slice(0, 500)}`)
    const type = headers.get('content-type')?.split(';')[0] ?? ''
    if (response.$ref !== undefined) {
      const pointer = response.$ref.split('/').slice(1)
      const answer = JSON.parse(text)
      this.check(answer, ...pointer, 'content', type, 'schema')
      if (answer.error.code !== pointer.at(-1)) throw new Error(`${operationId} answers ${status}: ${text}`)
      return
    }
    if (headers.has('etag') !== 'ETag' in (response.headers ?? {})) throw new Error(`${operationId} and its ETag`)
    if (responses.default !== undefined || response.content === undefined) return
    if (!(type in response.content)) throw new Error(`${operationId} answers ${status} as ${type}`)
    if (type === 'application/json')
      this.check(JSON.parse(text), 'paths', path, method, 'responses', `${status}`, 'content', type, 'schema')
  }

  /** @throws Error that names what does not match. @param pointer member names from the root to the schema */
  check(value: unknown, ...pointer: readonly string[]): void {
    const fragment = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).map(encodeURIComponent)
    const validate = this.ajv.getSchema(`document#/${fragment.join('/')}`) as ValidateFunction | undefined
    if (validate === undefined) throw new Error(`the document has no ${pointer.join(' ')}`)
    if (validate(value)) return
    const problems = validate.errors?.map(({ instancePath, message, params }) =>
      [instancePath, message, JSON.stringify(params)].join(' '),
    )
    throw new Error(`${pointer.join(' ')}:\n${problems?.join('\n')}\n${JSON.stringify(value).slice(0, 2_000)}`)
  }
}
