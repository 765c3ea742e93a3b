import { type Signal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import type { Api, Listed } from '../data/api.ts'

interface KeyName {
  readonly key_id: string
  readonly name: string | null
}

type Names = Signal<ReadonlyMap<string, string | null>>

const KEYS_MAX = 200

const namesOf = new WeakMap<Api, Names>()

/** The name of a key by its id, for who decided. The keys are read once, when a name is first needed. */
export function useKeyNames(): (keyId: string) => string {
  const { api } = useSession()
  const names = namesOf.get(api) ?? signal<ReadonlyMap<string, string | null>>(new Map())
  useEffect(() => {
    if (namesOf.has(api)) return
    namesOf.set(api, names)
    // A decision stays known by its key after that was revoked.
    const lists = [{ limit: KEYS_MAX }, { limit: KEYS_MAX, status: 'revoked' }]
    Promise.all(lists.map((query) => api.get<Listed<KeyName>>('/api/v1/keys', query))).then(
      (pages) => {
        names.value = new Map(pages.flatMap(({ items }) => items).map(({ key_id, name }) => [key_id, name]))
      },
      () => namesOf.delete(api),
    )
  }, [api, names])
  const known = names.value
  return (keyId) => {
    const name = known.get(keyId)
    return name ? `the key "${name}"` : `key …${keyId.slice(-8)}`
  }
}
