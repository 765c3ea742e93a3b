/** The parts of the OpenAPI document that the page shows. */

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly [limit: string]: unknown
}

interface Content {
  readonly schema?: Schema
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
}

export interface Response {
  readonly $ref?: string
  readonly description?: string
  readonly content?: Readonly<Record<string, Content>>
}

export interface Sample {
  readonly label: string
  readonly source: string
}

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly security?: readonly Readonly<Record<string, unknown>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Content>> }
  readonly responses?: Readonly<Record<string, Response>>
  readonly 'x-codeSamples'?: readonly Sample[]
}

export interface Endpoint {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description?: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Response>>
    readonly securitySchemes: Readonly<Record<string, { readonly description?: string }>>
  }
}

/** Samples name the address of a service on the same machine; the page names its own. @throws Error */
export async function loadDocument(): Promise<Document> {
  const response = await fetch('/docs/json')
  if (!response.ok) throw new Error(`GET /docs/json: ${response.status}`)
  return JSON.parse((await response.text()).replaceAll('http://127.0.0.1:3000', location.origin))
}

export function endpointsOf({ paths }: Document, tag: string): Endpoint[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags?.includes(tag))
      .map(([method, operation]) => ({ path, method, operation })),
  )
}

/** What a reference of the document names. */
export function resolved<T extends { readonly $ref?: string }>(document: Document, value: T): T {
  if (value.$ref === undefined) return value
  const found = value.$ref
    .slice(2)
    .split('/')
    .reduce<unknown>((from, name) => (from as Record<string, unknown> | undefined)?.[name], document)
  return (found ?? {}) as T
}
