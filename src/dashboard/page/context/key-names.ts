import type { Api, Listed } from '../data/api.ts'
import { useLoad } from '../data/loading.ts'
import { useSession } from './session.ts'

interface KeyName {
  readonly key_id: string
  readonly name: string | null
}

const KEYS_MAX = 200

const keysOf = new WeakMap<Api, Promise<readonly KeyName[]>>()

/** The name of a key by its id, for who decided or edited. The keys are read once, when a name is first needed. */
export function useKeyNames(): (keyId: string) => string {
  const { api } = useSession()
  const { data = [] } = useLoad(() => {
    const keys = keysOf.get(api) ?? readKeys(api)
    keysOf.set(api, keys)
    keys.catch(() => keysOf.delete(api))
    return keys
  }, [])
  return (keyId) => {
    const name = data.find(({ key_id }) => key_id === keyId)?.name
    return name ? `the key "${name}"` : `key …${keyId.slice(-8)}`
  }
}

/** Revoked keys are included: decisions still name them. */
async function readKeys(api: Api): Promise<readonly KeyName[]> {
  const read = (status?: string) => api.get<Listed<KeyName>>('/api/v1/keys', { limit: KEYS_MAX, status })
  return (await Promise.all([read(), read('revoked')])).flatMap(({ items }) => items)
}
