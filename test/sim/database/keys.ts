import { ApiError } from '../../../src/base/errors.ts'
import { dataText } from '../../../src/base/http/answer.ts'
import type { Mint } from '../../../src/base/ids.ts'
import { RawJson } from '../../../src/base/raw-json.ts'
import type { Caller } from '../../../src/tenants/keys/schema.ts'
import { insertKey } from '../../../src/tenants/keys/store.ts'
import { mintToken, type Token } from '../../../src/tenants/keys/token.ts'
import { time } from '../virtual-time.ts'
import type { Node } from './node.ts'
import type { Refusal, Work, WorkContext } from './world.ts'

/** A request with an `Idempotency-Key`, which creates a run. */
interface Request_ {
  readonly name: string
  /** The answer that a caller got. */
  text: string | undefined
}

/** A key, and when callers asked to revoke it, and were told that it is; infinite: never. */
interface Key {
  readonly name: string
  readonly token: Token
  readonly keyId: string
  revokingMs: number
  revokedMs: number
}

const REQUESTS = 3
const KEYS = 3
/** Of callers with keys for repeats; the answers are sealed with it. */
const TOKEN = 'svc_agent_caller'

/** Keys of a workspace, and requests that are repeated with an `Idempotency-Key`. */
export class KeysWork implements Work {
  private readonly requests: Request_[] = Array.from({ length: REQUESTS }, (_, n) => ({
    name: `${n}`,
    text: undefined,
  }))
  private readonly keys: readonly Key[] = Array.from({ length: KEYS }, (_, n) => ({
    ...{ name: `${n}`, token: mintToken('workspace'), keyId: crypto.randomUUID() },
    ...{ revokingMs: Number.POSITIVE_INFINITY, revokedMs: Number.POSITIVE_INFINITY },
  }))

  constructor(
    private readonly context: WorkContext,
    private readonly caller: Caller & { readonly agentId: string },
  ) {}

  async begin(): Promise<void> {
    const { workspaceId: workspace_id } = this.caller
    for (const { token, keyId: key_id } of this.keys) {
      const key = { key_id, workspace_id, agent_id: null, name: null, created_at: new Date(), expires_at: null }
      await this.context.server.read((sql) => insertKey(sql, token, key))
    }
  }

  step(): void {
    const { random } = time
    const pick = random.next()
    const key = random.pick(this.keys)
    if (pick < 0.4) this.start(random.pick(this.requests))
    else if (pick < 0.9) this.use(key)
    else this.revoke(key)
  }

  private start(request: Request_): void {
    const { caller } = this
    const metadata = new RawJson(`{"request":"${request.name}"}`)
    const work = ({ runs }: Node, mint: Mint) => runs.start(caller, { agent_id: caller.agentId, metadata }, mint)
    const ask = (node: Node) => once(node, caller, `start ${request.name}`, (mint) => work(node, mint))
    const told = (answer: { readonly text: string } | Refusal) => {
      const what = `request ${request.name}`
      if ('refused' in answer) return this.problem(what, `refused: ${answer.message}`)
      if ((request.text ?? answer.text) !== answer.text)
        this.problem(what, `answered ${request.text} and ${answer.text}`)
      request.text = answer.text
      return answer.text
    }
    this.context.call(`start a run, request ${request.name}`, ask, told, true)
  }

  private use(key: Key): void {
    const ask = async ({ ring }: Node) => ring.authenticate(key.token.text)
    this.context.call(`use key ${key.name}`, ask, (answer, askedMs) => {
      const isRefused = 'refused' in answer
      if (isRefused && key.revokingMs > time.nowMs) this.problem(`key ${key.name}`, `refused: ${answer.message}`)
      if (!isRefused && askedMs > key.revokedMs) this.problem(`key ${key.name}`, 'accepted after it was revoked')
      return isRefused ? answer.refused : 'accepted'
    })
  }

  private revoke(key: Key): void {
    key.revokingMs = Math.min(key.revokingMs, time.nowMs)
    const ask = ({ keys }: Node) => keys.revoke(this.caller, key.keyId)
    const told = (answer: object) => {
      if ('refused' in answer) return this.problem(`key ${key.name}`, `cannot be revoked: ${answer.refused}`)
      key.revokedMs = Math.min(key.revokedMs, time.nowMs)
      return 'revoked'
    }
    this.context.call(`revoke key ${key.name}`, ask, told, true)
  }

  async check(): Promise<void> {
    const { workspaceId } = this.caller
    const rows = await this.context.server.read(
      (sql) => sql<{ run_id: string; name: string }[]>`
        select run_id, metadata ->> 'request' as name from runs where workspace_id = ${workspaceId}`,
    )
    for (const { name, text } of this.requests) {
      const made = rows.filter((row) => row.name === name).map(({ run_id }) => run_id)
      const isDone = text === undefined ? made.length <= 1 : made.length === 1 && text === dataText({ run_id: made[0] })
      if (!isDone) this.problem(`request ${name}`, `answered ${text}, made ${made.join(' and ') || 'nothing'}`)
    }
    for (const key of this.keys) this.use(key)
  }

  private problem(what: string, text: string): string {
    this.context.problem(`${what}: ${text}`)
    return text
  }
}

/** Does something once for the same `Idempotency-Key`. @returns the text of the answer */
async function once(node: Node, caller: Caller, idemKey: string, work: (mint: Mint) => Promise<unknown>) {
  const headers = { authorization: `Bearer ${TOKEN}`, 'idempotency-key': idemKey }
  const request = new Request('http://localhost/', { method: 'POST', headers })
  try {
    const answer = await node.idempotency.carryOut({ request, caller, bytes: new Uint8Array() }, work)
    return { text: answer instanceof Response ? await answer.text() : dataText(answer) }
  } catch (error) {
    // Its caller tries again.
    if (error instanceof ApiError && error.reason === 'idempotency_key_running')
      throw new ApiError('UNAVAILABLE', error.message)
    throw error
  }
}
