import type { Peers } from '../peers.ts'
import { type ClusterSignature, FORWARDED_HEADER } from './signature.ts'

export interface PeersDeps {
  readonly signature: ClusterSignature
  /** Where a live node is reached; null when there is no such node. */
  readonly urlOf: (instanceId: string) => string | null
}

const NO_BODY = new Uint8Array(0)

/** Sends requests to the other nodes, which verify them as they do forwarded ones. */
export function createPeers({ signature, urlOf }: PeersDeps): Peers {
  return {
    async get(instanceId, path, caller, signal) {
      const url = urlOf(instanceId)
      if (url === null) return null
      const headers = { [FORWARDED_HEADER]: signature.sign('GET', path, caller, NO_BODY) }
      return fetch(url + path, { headers, signal })
    },
  }
}
