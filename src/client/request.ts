import type { paths } from './generated/api.ts'

/** Types of calls by method and path, from the OpenAPI document. */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The paths that have such a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [N in Lowercase<M>]: { responses: unknown } } ? P : never
}[keyof paths]

export type OperationOf<M extends Method, P extends PathOf<M>> = paths[P] extends { [N in Lowercase<M>]: infer O }
  ? O
  : never

type JsonOf<Response> = Response extends { content: { 'application/json': { data: infer Data } } } ? Data : never

/** `data` of the successful response of an operation. */
export type DataOf<Operation> = Operation extends { responses: infer Responses }
  ? { [S in keyof Responses]: S extends 200 | 201 | 202 ? JsonOf<Responses[S]> : never }[keyof Responses]
  : never

/** What an operation takes in its path or its query. */
export type ParametersOf<Operation, Place extends string> = Operation extends {
  parameters: { [N in Place]?: infer Given }
}
  ? Exclude<Given, undefined>
  : never

type BodyOf<Operation> = Operation extends { requestBody?: infer Body }
  ? [NonNullable<Body>] extends [never]
    ? never
    : NonNullable<Body> extends { content: { 'application/json': infer Json } }
      ? Json
      : never
  : never

/** Whether an operation changes a version that the call may name. */
type IsVersioned<Operation> = [ParametersOf<Operation, 'header'>] extends [never]
  ? false
  : 'If-Match' extends keyof ParametersOf<Operation, 'header'>
    ? true
    : false

type Part<Name extends string, Value> = [Value] extends [never] ? unknown : { readonly [N in Name]: Value }
type OptionalPart<Name extends string, Value> = [Value] extends [never]
  ? unknown
  : { readonly [N in Name]?: Value | undefined }

/** Members that may be left out may be undefined, too, at any depth. */
export type Loose<T> = T extends object
  ? { [K in keyof T]: Loose<T[K]> | (object extends Pick<T, K> ? undefined : never) }
  : T

/** What a call of an operation takes, beside what every call takes. */
export type InputOf<Operation> = Part<'path', ParametersOf<Operation, 'path'>> &
  OptionalPart<'query', Loose<ParametersOf<Operation, 'query'>>> &
  Part<'body', Loose<BodyOf<Operation>>> &
  (IsVersioned<Operation> extends true ? VersionOption : unknown)

interface VersionOption {
  /** The version that was read: at another one, the call is a `CONFLICT` with the reason `version_changed`. Default: any. */
  readonly ifVersion?: number | undefined
}

/** What every call takes. */
export interface CallOptions {
  /** How long one attempt may take. Default: that of the client; none for calls that last as long as a run or a query. */
  readonly timeoutMs?: number | undefined
  /** How often the call is repeated after temporary failures. Default: that of the client. */
  readonly maxRetries?: number | undefined
  /** Makes a POST repeatable. Default: a new one for each call. Null: none, because ids in the body make it so. */
  readonly idempotencyKey?: string | null | undefined
  /** Ends the call. */
  readonly signal?: AbortSignal | undefined
}

/** What an edit takes, beside what it changes. */
export interface EditOptions extends CallOptions, VersionOption {}

/** `{ a: 1, b: ['x', 'y'] }` as `?a=1&b=x&b=y`; undefined values are left out. */
export function queryString(query: object | undefined): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]): [string, string][] =>
    (Array.isArray(value) ? value : [value]).filter((each) => each !== undefined).map((each) => [name, String(each)]),
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
}

/** Fills `{name}` in a path. */
export function fillPath(path: string, values: Readonly<Record<string, unknown>> | undefined): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values?.[name])))
}
