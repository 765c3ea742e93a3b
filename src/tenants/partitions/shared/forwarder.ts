import { ApiError } from '../../../base/errors.ts'
import type { RawBody } from '../../../base/http/body.ts'
import { requestIdOf } from '../../../base/http/request-id.ts'
import type { Forwarder } from '../../keys/forward.ts'
import type { Caller } from '../../keys/schema.ts'
import { NotOwner, type Partitions } from '../partition.ts'
import type { Ownership } from './ownership.ts'
import { isUnreached, type Peers } from './peers.ts'
import { digestOf, FORWARDED_HEADER, type NodeSignature, notSigned } from './signature.ts'

interface ForwarderDeps {
  readonly partitions: Partitions
  readonly signature: NodeSignature
  readonly peers: Pick<Peers, 'urlOf'>
  readonly ownership: Pick<Ownership, 'ownerOf' | 'refresh'>
  /** How long to wait for an owner, milliseconds. */
  readonly patienceMs?: number
}

const PATIENCE_MS = 5_000
const POLL_MS = 100
/** How long the owner may take for an append; its own limits are shorter. */
const ANSWER_MS = 60_000
/** `Misdirected Request`: the node does not own the partition. Only nodes see it. */
const MISDIRECTED = 421
/** Headers of a request that the owner needs. */
const REQUEST_HEADERS = ['content-type', 'content-encoding', 'idempotency-key', 'authorization'] as const
/** Headers that belong to the connection between two nodes, or that every node adds itself. */
const HOP_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'date', 'x-request-id'] as const

/** Forwards requests between the processes that share the partitions. */
export function createForwarder(deps: ForwarderDeps): Forwarder {
  const { partitions, signature, peers, ownership, patienceMs = PATIENCE_MS } = deps

  /** Sends a request to its owner. @returns undefined when the owner has not executed it, so that it may be sent again */
  async function send(
    owner: string,
    url: string,
    request: Request,
    caller: Caller,
    { bytes }: RawBody,
  ): Promise<Response | undefined> {
    const path = pathOf(request)
    const headers = new Headers({ 'x-request-id': requestIdOf(request) })
    for (const name of REQUEST_HEADERS) {
      const value = request.headers.get(name)
      if (value !== null) headers.set(name, value)
    }
    headers.set(FORWARDED_HEADER, signature.sign(owner, request.method, path, caller, bytes))
    try {
      const signal = AbortSignal.timeout(ANSWER_MS)
      const response = await fetch(url + path, {
        method: request.method,
        headers,
        body: bytes as Uint8Array<ArrayBuffer>,
        signal,
        decompress: false,
        redirect: 'error',
      })
      if (response.status !== MISDIRECTED) return answerOf(response, await response.bytes())
      return undefined
    } catch (cause) {
      if (isUnreached(cause)) return undefined
      // The owner may have stored the report: only the caller knows whether repeating it is safe.
      const message = 'the node that writes this workspace did not answer; try again'
      throw new ApiError('UNAVAILABLE', message, { cause, retryAfterSeconds: 1 })
    }
  }

  async function forward(request: Request, caller: Caller, body: RawBody): Promise<Response | undefined> {
    const owner = ownership.ownerOf(caller.partition)
    const url = owner === null ? null : await peers.urlOf(owner)
    return owner === null || url === null ? undefined : send(owner, url, request, caller, body)
  }

  return {
    receive(request) {
      const header = request.headers.get(FORWARDED_HEADER)
      return header === null ? null : signature.verify(header, request.method, pathOf(request))
    },
    prove: (challenge) => signature.prove(challenge),
    checkBody({ bodyDigest }, body) {
      if (digestOf(body) !== bodyDigest) throw notSigned()
    },
    async carryOut(request, caller, body, execute) {
      const isForwarded = request.headers.has(FORWARDED_HEADER)
      const deadline = performance.now() + patienceMs
      for (;;) {
        try {
          if (partitions.of(caller).owned !== undefined) return await execute()
        } catch (error) {
          if (!(error instanceof NotOwner)) throw error
        }
        // Never a second hop: the node that sent it tries again.
        if (isForwarded) return new Response(null, { status: MISDIRECTED })
        const response = await forward(request, caller, body)
        if (response !== undefined) return response
        if (performance.now() > deadline || request.signal.aborted) throw new NotOwner()
        await Bun.sleep(POLL_MS)
        await ownership.refresh()
      }
    },
  }
}

function pathOf(request: Request): string {
  const { pathname, search } = new URL(request.url)
  return pathname + search
}

/** The owner's answer, without the headers of its connection. */
function answerOf({ status, headers }: Response, body: Uint8Array<ArrayBuffer>): Response {
  const passed = new Headers(headers)
  for (const name of HOP_HEADERS) passed.delete(name)
  return new Response(body, { status, headers: passed })
}
