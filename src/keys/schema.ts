/** Who is calling, once its key has been accepted. Everything a request may touch follows from it. */
export interface Caller {
  readonly keyId: string
  readonly type: 'agent' | 'workspace'
  readonly workspaceId: string
  /** The one agent an agent key speaks for; null for a workspace key. */
  readonly agentId: string | null
}
