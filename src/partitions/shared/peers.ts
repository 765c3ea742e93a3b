import type { Peers } from '../peers.ts'
import type { Addresses } from './addresses.ts'
import { FORWARDED_HEADER, type NodeSignature } from './signature.ts'

interface PeersDeps {
  readonly signature: NodeSignature
  readonly addresses: Addresses
}

const NO_BODY = new Uint8Array(0)

/** Sends requests to the other nodes, which verify them as they do forwarded ones. */
export function createPeers({ signature, addresses }: PeersDeps): Peers {
  return {
    async get(instanceId, path, caller, signal) {
      const url = await addresses.of(instanceId)
      if (url === null) return null
      const headers = { [FORWARDED_HEADER]: signature.sign(instanceId, 'GET', path, caller, NO_BODY) }
      return fetch(url + path, { headers, signal, redirect: 'error' })
    },
  }
}
