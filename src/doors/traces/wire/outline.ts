import type { Steps } from '../../../base/http/shared-slice.ts'
import { costOf } from '../../kit.ts'
import {
  type AnyValue,
  type Attributes,
  type DecodeBudget,
  type Decoded,
  type DecodeLimits,
  ITEM_PARTS,
  ItemTooLarge,
  type OpenedExport,
  type Range,
  type Refusal,
  type Resource,
} from '../telemetry.ts'

/** Where the items of an export are in its body. Found without decoding them, so that their number can be charged first. */
export interface Outline {
  readonly groups: readonly OutlineGroup[]
  readonly items: number
  /** Events in the spans. */
  readonly nested: number
}

/** `Resource{Spans,Logs,Metrics}` of OTLP. */
export interface OutlineGroup {
  /** It may come in several pieces. */
  readonly resource: Range[]
  readonly scopes: OutlineScope[]
}

/** `Scope{Spans,Logs,Metrics}` of OTLP. */
export interface OutlineScope {
  readonly scope: Range[]
  readonly items: Range[]
}

/** Decodes the parts of an outline. */
export interface ItemDecoder<Item> {
  readonly budget: DecodeBudget
  resource(range: Range, into: Attributes): void
  scopeName(range: Range): string
  /** May be larger than one step. */
  item(range: Range, resource: Resource, scope: string): Steps<Item>
}

export function opened<Item>(
  outline: Outline,
  bodyBytes: number,
  decoder: ItemDecoder<Item>,
  limits: DecodeLimits,
): OpenedExport<Item> {
  return {
    cost: costOf(outline.items + outline.nested, bytesOf(outline, bodyBytes)),
    decode: () => decodeOutline(outline, decoder, limits),
  }
}

/** What the export may become in the stores: each item may carry a copy of its resource and scope. */
function bytesOf({ groups }: Outline, bodyBytes: number): number {
  let bytes = bodyBytes
  for (const { resource, scopes } of groups) {
    for (const { scope, items } of scopes) bytes += items.length * (lengthOf(resource) + lengthOf(scope))
  }
  return bytes
}

function lengthOf(ranges: readonly Range[]): number {
  return ranges.reduce((length, { start, end }) => length + end - start, 0)
}

/** One step for each resource, scope and item. */
function* decodeOutline<Item>(
  { groups }: Outline,
  decoder: ItemDecoder<Item>,
  { resourceBytes }: DecodeLimits,
): Steps<Decoded<Item>> {
  const items: Item[] = []
  const refusals: Refusal[] = []
  let first = 1
  for (const group of groups) {
    const resource: Resource = { attributes: new Map<string, AnyValue>() }
    const badResource = attempt(decoder.budget, () => {
      checkLength(group.resource, 'resource', resourceBytes)
      for (const range of group.resource) decoder.resource(range, resource.attributes)
    })
    for (const scoped of group.scopes) {
      let scope = ''
      const badScope = attempt(decoder.budget, () => {
        checkLength(scoped.scope, 'scope', resourceBytes)
        for (const range of scoped.scope) scope = decoder.scopeName(range)
      })
      yield
      const problem = badResource ?? badScope
      if (problem !== null) {
        if (scoped.items.length > 0) refusals.push({ first, items: scoped.items.length, problem })
      } else {
        for (const [index, range] of scoped.items.entries()) {
          decoder.budget.beginItem()
          try {
            items.push(yield* decoder.item(range, resource, scope))
          } catch (error) {
            if (!(error instanceof ItemTooLarge)) throw error
            refusals.push({ first: first + index, items: 1, problem: error.message })
          }
          yield
        }
      }
      first += scoped.items.length
    }
    yield
  }
  return { items, refusals }
}

/** @throws ItemTooLarge */
function checkLength(ranges: readonly Range[], noun: string, bytesMax: number): void {
  const bytes = lengthOf(ranges)
  if (bytes > bytesMax) throw new ItemTooLarge(`the ${noun} has ${bytes} bytes; at most ${bytesMax} are allowed`)
}

function attempt(budget: DecodeBudget, decode: () => void): string | null {
  budget.beginItem()
  try {
    decode()
    return null
  } catch (error) {
    if (error instanceof ItemTooLarge) return error.message
    throw error
  }
}

/** Collects an outline, and charges the memory for it. */
export class OutlineBuilder {
  readonly groups: OutlineGroup[] = []
  items = 0
  nested = 0

  constructor(private readonly budget: DecodeBudget) {}

  group(): OutlineGroup {
    this.charge()
    const group = { resource: [], scopes: [] }
    this.groups.push(group)
    return group
  }

  scope(group: OutlineGroup): OutlineScope {
    this.charge()
    const scope = { scope: [], items: [] }
    group.scopes.push(scope)
    return scope
  }

  item(scope: OutlineScope, range: Range): void {
    this.charge()
    this.items++
    scope.items.push(range)
  }

  private charge(): void {
    this.budget.beginItem()
    this.budget.take(ITEM_PARTS)
  }
}
