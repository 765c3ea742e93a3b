import type { Log } from '../../base/log.ts'
import type { NodeSignature } from './signature.ts'

interface AddressesDeps {
  readonly signature: NodeSignature
  /** The URL that a live node states; null when there is no such node. */
  readonly urlOf: (instanceId: string) => string | null
  readonly log: Log
}

/** The route where a node proves its identity to processes that know `CLUSTER_SECRET`. */
export const PROOF_PATH = '/internal/node'

const ANSWER_MS = 2_000
const ANSWER_BYTES_MAX = 1_000
/** More than a cluster has nodes. */
const KNOWN_MAX = 1_024

/**
 * The URLs of the other nodes. Each node states its own (`INSTANCE_URL`), which may be wrong, so nothing is sent to a URL
 * until the process there has proved that it is that node: calls carry keys and reports.
 */
export class Addresses {
  /** The proven instance id, by URL. */
  private readonly proved = new Map<string, string>()
  /** Proofs that are being requested, by instance and URL. */
  private readonly asking = new Map<string, Promise<boolean>>()
  /** URLs whose failure has been logged. */
  private readonly reported = new Set<string>()

  constructor(private readonly deps: AddressesDeps) {}

  /** The URL of a node, once the node has proved that it is there; null when it is not, or is not alive. */
  async of(instanceId: string): Promise<string | null> {
    const url = this.deps.urlOf(instanceId)
    if (url === null || this.proved.get(url) === instanceId) return url
    const key = `${instanceId} ${url}`
    let answer = this.asking.get(key)
    if (answer === undefined) {
      answer = this.ask(instanceId, url).finally(() => this.asking.delete(key))
      this.asking.set(key, answer)
    }
    return (await answer) ? url : null
  }

  private async ask(instanceId: string, url: string): Promise<boolean> {
    const { signature, log } = this.deps
    const challenge = crypto.randomUUID()
    let found: string
    try {
      const signal = AbortSignal.timeout(ANSWER_MS)
      const response = await fetch(`${url}${PROOF_PATH}?challenge=${challenge}`, { signal, redirect: 'error' })
      found = (await response.text()).slice(0, ANSWER_BYTES_MAX)
    } catch (error) {
      found = ''
      // A node that has just ended refuses connections; others take over soon.
      if (isUnreached(error)) return false
    }
    const isThere = found === signature.prove(challenge, instanceId)
    if (this.proved.size >= KNOWN_MAX) this.proved.clear()
    if (this.reported.size >= KNOWN_MAX) this.reported.clear()
    if (isThere) this.proved.set(url, instanceId)
    else if (!this.reported.has(url))
      log.warn('another process, or none, answers at the address of a node; check its INSTANCE_URL', {
        instanceId,
        url,
      })
    if (isThere) this.reported.delete(url)
    else this.reported.add(url)
    return isThere
  }
}

/** Whether the connection could not be opened. */
export function isUnreached(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'ConnectionRefused' || code === 'ECONNREFUSED' || code === 'FailedToOpenSocket'
}
