import type { Log } from '../../base/log.ts'
import type { NodeSignature } from './signature.ts'

interface AddressesDeps {
  readonly signature: NodeSignature
  /** Where a live node says that it is reached; null when there is no such node. */
  readonly urlOf: (instanceId: string) => string | null
  readonly log: Log
}

/** Where a node proves which one it is, to whoever knows `CLUSTER_SECRET`. */
export const PROOF_PATH = '/internal/node'

const ANSWER_MS = 2_000
const ANSWER_BYTES_MAX = 1_000
/** More than a cluster has nodes. */
const KNOWN_MAX = 1_024

/**
 * Where nodes are reached. A node says so itself (`INSTANCE_URL`), and may be wrong, so nothing is sent to an address before
 * the process there has proved that it is that node: calls carry keys and reports.
 */
export class Addresses {
  /** The instance that was found at an address. */
  private readonly proved = new Map<string, string>()
  /** Addresses that are being asked at the moment. */
  private readonly asking = new Map<string, Promise<boolean>>()
  private readonly reported = new Set<string>()

  constructor(private readonly deps: AddressesDeps) {}

  /** The URL of a node that is really there; null when it is not, or not alive. */
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
