import { address, setQuery } from './router.ts'

/** How a member of the address's query is read, and written. An empty text is not part of the address. */
export interface Member<Value> {
  /** @param text empty: the address does not have it */
  readonly read: (text: string) => Value
  readonly write: (value: Value) => string
}

export function text(otherwise = ''): Member<string> {
  return { read: (given) => given || otherwise, write: (value) => (value === otherwise ? '' : value) }
}

/** Any texts, empty by default. */
export function texts<Name extends string>(...names: readonly Name[]): Readonly<Record<Name, Member<string>>> {
  return Object.fromEntries(names.map((name) => [name, text()])) as Record<Name, Member<string>>
}

/** One of a few values; the first one unless the address has another. */
export function oneOf<Value extends string>(values: readonly Value[]): Member<Value> {
  const [first] = values as readonly [Value]
  return { read: (given) => values.find((each) => each === given) ?? first, write: (value) => text(first).write(value) }
}

/** A whole number from 1 on; null: none. */
export const number: Member<number | null> = {
  read: (given) => (/^[1-9]\d{0,8}$/.test(given) ? Number(given) : null),
  write: (value) => (value === null ? '' : String(value)),
}

type Query = Readonly<Record<string, string>>

/** What a view keeps in the query of the address: each member with its type and default, declared once. */
export function addressState<Values extends object>(
  members: { readonly [Name in keyof Values]: Member<Values[Name]> },
) {
  const names = Object.keys(members) as (keyof Values & string)[]
  const of = (query: Query): Values =>
    Object.fromEntries(names.map((name) => [name, members[name].read(query[name] ?? '')])) as Values
  /** As members of a link's query. */
  const write = (values: Partial<Values>): Query =>
    Object.fromEntries(
      names
        .filter((name) => Object.hasOwn(values, name))
        .map((name) => [name, members[name].write(values[name] as never)]),
    )
  const set = (changes: Partial<Values>) => setQuery(write(changes))
  return {
    of,
    write,
    /** Changes the address in place. */
    set,
    /** Reading it subscribes the component that does. */
    get value(): Values {
      return of(address.value.query)
    },
    /** A member, for a field. */
    field: <Name extends keyof Values & string>(name: Name) => ({
      value: of(address.value.query)[name],
      set: (value: Values[Name]) => set({ [name]: value } as unknown as Partial<Values>),
    }),
  }
}
