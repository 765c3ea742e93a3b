import type { TObject, TSchema } from '@sinclair/typebox'
import type { PageOf } from '../../base/http/page.ts'
import { PageQuery } from '../../base/http/schema.ts'
import { ifMatch } from '../../base/http/version.ts'
import type { Mint } from '../../base/ids.ts'
import type { Guards } from './guards.ts'
import type { Caller } from './schema.ts'
import { versionedRoutes } from './versioned-routes.ts'

export interface EditOptions {
  /** Only this version is edited; undefined: any. */
  readonly version: number | undefined
  readonly signal: AbortSignal
}

interface Description {
  readonly description: string
  readonly errors?: string[]
}

interface Resource<Create extends TSchema, Edit extends TSchema, Item extends TSchema, Created extends TSchema> {
  readonly path: string
  readonly tag: string
  /** As the document names one of them, with its article, and several. */
  readonly one: string
  readonly many: string
  /** The id in a path. */
  readonly params: TObject
  readonly item: Item
  readonly page: TSchema
  readonly list?: Description
  readonly get: Description
  /** `answer`: if it is more than the item. */
  readonly create: Description & { readonly body: Create; readonly answer?: Created }
  readonly edit: Description & { readonly body: Edit }
  readonly delete: Description & { readonly answer: TSchema }
  readonly store: {
    create(caller: Caller, body: Create['static'], mint: Mint, signal: AbortSignal): Promise<Created['static']>
    list(caller: Caller, page: PageQuery): Promise<PageOf<Item['static']>>
    get(caller: Caller, id: string): Promise<Item['static']>
    edit(caller: Caller, id: string, body: Edit['static'], options: EditOptions): Promise<Item['static']>
    delete(caller: Caller, id: string, version: number | undefined): Promise<unknown>
  }
}

/** The routes by which a workspace creates, lists, reads, edits and deletes something, each edit making a new version. */
export function resourceRoutes<
  Create extends TSchema,
  Edit extends TSchema,
  Item extends TSchema,
  Created extends TSchema = Item,
>(guards: Guards, resource: Resource<Create, Edit, Item, Created>) {
  // Elysia derives types only of schemas that it knows.
  const {
    path,
    tag,
    one,
    many,
    params: idParam,
    item,
    page,
    store,
    ...routes
  } = resource as Resource<TSchema, TSchema, TSchema, TSchema>
  const [id] = Object.keys(idParam.properties)
  const idOf = (params: unknown) => (params as Readonly<Record<string, string>>)[id!]!
  const noun = one.slice(one.indexOf(' ') + 1)
  return versionedRoutes(guards, path, tag)
    .post('', ({ caller, body, mint, request }) => store.create(caller, body, mint, request.signal), {
      body: routes.create.body,
      response: routes.create.answer ?? item,
      detail: detailOf(`create ${noun}`, `Create ${one}`, routes.create),
    })
    .get('', ({ caller, query }) => store.list(caller, query), {
      query: PageQuery,
      response: page,
      detail: detailOf(`list ${many}`, `List ${many}`, routes.list ?? { description: 'Newest first.' }),
    })
    .get(`/:${id}`, ({ caller, params }) => store.get(caller, idOf(params)), {
      params: idParam,
      response: item,
      detail: detailOf(`get ${noun}`, `Read ${one}`, routes.get),
    })
    .patch(
      `/:${id}`,
      ({ caller, params, body, request }) =>
        store.edit(caller, idOf(params), body, { version: ifMatch(request), signal: request.signal }),
      {
        params: idParam,
        body: routes.edit.body,
        response: item,
        detail: detailOf(`edit ${noun}`, `Edit ${one}`, routes.edit),
      },
    )
    .delete(`/:${id}`, ({ caller, params, request }) => store.delete(caller, idOf(params), ifMatch(request)), {
      params: idParam,
      response: routes.delete.answer,
      detail: detailOf(`delete ${noun}`, `Delete ${one}`, routes.delete),
    })
}

function detailOf(operation: string, summary: string, { description, errors = [] }: Description) {
  const operationId = operation.replace(/ (\w)/g, (_, first: string) => first.toUpperCase())
  return { operationId, summary, description, errors }
}
