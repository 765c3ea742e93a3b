/** The run that events belong to, as the journal needs it. Never changes once the run exists, so it is safe to cache. */
export interface RunRef {
  readonly runId: string
  readonly workspaceId: string
  readonly agentId: string
  readonly runtimeType: 'external' | 'hosted'
}

/** Checked events of one call, on their way into the journal. */
export interface EventBatch {
  readonly run: RunRef
  readonly count: number
}
