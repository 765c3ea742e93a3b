import type { Log } from '../../../base/log.ts'
import type { Caller } from '../../keys/schema.ts'
import type { Ownership } from './ownership.ts'
import { FORWARDED_HEADER, type NodeSignature } from './signature.ts'

/** The route where a node proves its identity to processes that know `CLUSTER_SECRET`. */
export const PROOF_PATH = '/internal/node'

const ANSWER_MS = 2_000
const ANSWER_BYTES_MAX = 1_000
/** More than a cluster has nodes. */
const KNOWN_MAX = 1_024
const NO_BODY = new Uint8Array(0)

/**
 * The other nodes. Each one states its own URL (`INSTANCE_URL`), which may be wrong, so nothing is sent to a URL until the
 * process there has proved that it is that node: calls carry keys and reports.
 */
export class Peers {
  /** The proven instance id, by URL. */
  private readonly proved = new Map<string, string>()
  /** Proofs that are being requested, by instance and URL. */
  private readonly asking = new Map<string, Promise<boolean>>()
  /** URLs whose failure has been logged. */
  private readonly reported = new Set<string>()

  constructor(
    private readonly signature: NodeSignature,
    private readonly nodes: Pick<Ownership, 'urlOf'>,
    private readonly log: Log,
  ) {}

  /**
   * Sends a GET request to one of them, in one hop, signed in the name of a caller that this process has admitted: for
   * state that only that process has in memory.
   *
   * @param signal aborts the request and its response
   * @returns null when no such process is alive
   * @throws when it cannot be reached
   */
  async get(instanceId: string, path: string, caller: Caller, signal: AbortSignal): Promise<Response | null> {
    const url = await this.urlOf(instanceId)
    if (url === null) return null
    const headers = { [FORWARDED_HEADER]: this.signature.sign(instanceId, 'GET', path, caller, NO_BODY) }
    return fetch(url + path, { headers, signal, redirect: 'error' })
  }

  /** The URL of a node, once the node has proved that it is there; null when it is not, or is not alive. */
  async urlOf(instanceId: string): Promise<string | null> {
    const url = this.nodes.urlOf(instanceId)
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
    const { signature, log } = this
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
