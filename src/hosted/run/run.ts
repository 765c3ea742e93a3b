import type { RunStatus, TerminalStatus } from '../../activity/runs/state.ts'
import type { Usage } from '../../activity/runs/usage-schema.ts'
import type { TokenCounts } from '../../base/conventions/usage.ts'
import { parseText } from '../../base/http/json-reader.ts'
import type { RunIdentity } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { ModelToolCall, ProviderMembers } from '../../outbound/model/model.ts'
import type { HistoryMessage, RunPlan } from './plan.ts'
import type { CallStatus } from './state.ts'

/** A hosted run: the part that never changes. */
export interface HostedRun extends RunIdentity {
  readonly agentId: string
  /** The run that was invoked: this one, or its topmost ancestor. */
  readonly rootRunId: string
  /** The call of its parent that this run carries out. */
  readonly parentCallId: string | null
  readonly sessionId: string | null
  readonly plan: RunPlan
}

/** The part of a run that is needed to end it. */
export type HostedRunRef = Pick<HostedRun, 'runId' | 'workspaceId' | 'agentId' | 'parentCallId' | 'sessionId'>

/** One answer of the model. */
export interface Step extends TokenCounts {
  /** From 1. */
  readonly step: number
  /** Distinguishes this answer from one that broke off before it was stored. */
  readonly attempt: string
  readonly content: string | null
  readonly toolCalls: readonly ModelToolCall[]
  readonly extra?: ProviderMembers | undefined
  /** The message to the model about an answer that could not be accepted. */
  readonly remark: string | null
}

/** What an answer of the model costs. */
export interface Cost {
  readonly costUsd: number
  /** The amount charged to budgets: a model of unknown price counts as the most expensive one. */
  readonly spentUsd: number
}

/** A call of a tool that the model asked for. */
export interface Call {
  /** Also sent to the tool as the Idempotency-Key. */
  readonly callId: string
  readonly step: number
  /** Index among the calls of its step, from 0. */
  readonly position: number
  /** The model's id for the call. */
  readonly toolCallId: string
  readonly tool: string
  readonly input: RawJson
  readonly status: CallStatus
  /** The run that carries it out, where the tool is an agent. */
  readonly childRunId: string | null
  /** The result for the model; null until it is known. */
  readonly output: RawJson | null
  /** Frame numbers in the run's output stream. */
  readonly startedFrame: number | null
  readonly finishedFrame: number | null
  /** Milliseconds. */
  readonly durationMs: number | null
}

/** A question for a person that a run waits for. */
export interface Pause {
  readonly pauseId: string
  readonly callId: string
  readonly type: 'approval' | 'input'
  readonly tool: string | null
  readonly input: RawJson | null
  readonly question: string | null
  readonly options: readonly string[] | null
  readonly expiresAt: Date | null
  readonly frame: number
}

/** A pause as it is stored. */
export interface StoredPause extends Pause {
  readonly requestedAt: Date
}

/** A run with everything it has done so far: all that is needed to continue it. */
export interface RunProgress extends Cost {
  readonly run: HostedRun
  readonly history: readonly HistoryMessage[]
  readonly steps: Step[]
  readonly calls: Call[]
  /** Only pending ones. */
  readonly pauses: Pause[]
  readonly usedMs: number
}

export interface EndedOutcome {
  readonly kind: 'ended'
  readonly status: TerminalStatus
  readonly output: RawJson | null
  readonly errorMessage: string | null
  readonly errorDetail: RawJson | null
  readonly usage: Usage
}

/** The state of a run when its executor stopped. */
export type RunOutcome =
  | EndedOutcome
  | { readonly kind: 'paused'; readonly pending: PendingPause }
  /** Another process continues it. */
  | {
      readonly kind: 'released'
      readonly status: RunStatus
      /** The process that executes it now (table `instances`), if the row of the run was read and names one. */
      readonly executor?: string | null
    }

/** Stopped by its process, to be continued by another one or later. */
export const RELEASED: RunOutcome = { kind: 'released', status: 'running' }

/** Child runs: each carries out a call of its parent. */
export interface Children {
  /**
   * Makes sure that the call's run exists. An existing run continues.
   * @returns null, or why the run cannot be created, for the model
   * @throws OwnershipLost when the parent may no longer start runs
   */
  begin(parent: HostedRun, call: Call, agentId: string): Promise<{ readonly problem: string } | null>
  /** Resolves once the run has ended or paused. Rejects when the signal aborts. */
  settled(run: RunIdentity, signal: AbortSignal): Promise<RunOutcome>
  /** Stops the executors of runs that have ended with their parent. */
  stop(runs: readonly RunIdentity[]): void
}

/** `pending` of a paused run's record. */
export type PendingPause =
  | {
      readonly type: 'approval'
      readonly id: string
      /** The run that waits: this one or a descendant. */
      readonly run_id: string
      readonly tool: string
      readonly input: RawJson
      readonly expires_at: string | null
    }
  | {
      readonly type: 'input'
      readonly id: string
      readonly run_id: string
      readonly question: string
      readonly options?: readonly string[]
      readonly expires_at: string | null
    }

/** The `pending` of a run that waits for this pause. */
export function pendingOf(runId: string, pause: Pause): PendingPause {
  const expires_at = pause.expiresAt?.toISOString() ?? null
  if (pause.type === 'approval')
    return { type: 'approval', id: pause.pauseId, run_id: runId, tool: pause.tool!, input: pause.input!, expires_at }
  const options = pause.options === null ? {} : { options: pause.options }
  return { type: 'input', id: pause.pauseId, run_id: runId, question: pause.question!, ...options, expires_at }
}

/** The status of a run that waits for it. */
export function pausedStatus({ type }: PendingPause) {
  return type === 'approval' ? 'awaiting_approval' : 'awaiting_input'
}

/** The members of a pending pause that callers see, in responses and output streams. */
export function publicPause({ id, type, run_id: _waiting, ...details }: PendingPause) {
  return { [type === 'approval' ? 'approval_id' : 'request_id']: id, ...details }
}

/** Reads a stored `pending`; the arguments of a call keep their text. */
export function parsePending(stored: RawJson): PendingPause {
  return parseText(stored.text, Number.POSITIVE_INFINITY) as PendingPause
}
