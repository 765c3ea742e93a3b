import { isTerminal, type RunStatus } from '../../../activity/runs/state.ts'
import { ApiError } from '../../../base/errors.ts'
import { shown } from '../../../base/http/validation-message.ts'
import { isUuid } from '../../../base/ids.ts'
import { isObject } from '../../../base/json-object.ts'
import type { RawJson } from '../../../base/raw-json.ts'
import type { Hosted } from '../../../hosted/hosted.ts'
import type { Decision } from '../../../hosted/pauses/store.ts'
import { INVALID_PARAMS, METHOD_NOT_FOUND, RpcError } from '../errors.ts'
import type { CallContext, MethodHandler } from '../provider.ts'
import { canBeShown, decisionOf, formOf } from './forms.ts'
import { endedResult } from './results.ts'
import { runOf, type TaskPause, type TaskRow, type TaskStore } from './task-store.ts'

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'
const MISSING_CAPABILITY = -32_021
const POLL_INTERVAL_MS = 1_000
const RESPONSES_MAX = 100

interface CallState {
  /** Null until the run has ended. */
  readonly result: object | null
  readonly isPaused: boolean
  readonly message: string
  /** The forms that the client can show to a person, by the id of the pause; null if there are none. */
  readonly inputRequests: object | null
}

interface TasksDeps {
  readonly store: TaskStore
  readonly hosted: Pick<Hosted, 'invocations' | 'resume'>
}

/**
 * Runs as tasks (the extension `io.modelcontextprotocol/tasks`). The id of a task is that of its run, and its state that of
 * the run: so tasks survive restarts, end by the same rules, and what they wait for can be decided by any door.
 */
export class AgentTasks {
  constructor(private readonly deps: TasksDeps) {}

  /** The methods of the extension. */
  methods(): ReadonlyMap<string, MethodHandler> {
    const method =
      (
        answer: (context: CallContext, task: TaskRow, params: Record<string, unknown>) => Promise<object>,
      ): MethodHandler =>
      async (context, params) => {
        if (context.era === 'legacy') throw new RpcError(METHOD_NOT_FOUND, 'Method not found')
        if (!takesTasks(context)) throw missingCapability()
        const given = paramsOf(params)
        return answer(context, await this.found(context, given.taskId), given)
      }
    return new Map([
      [
        'tasks/get',
        method(async (context, found) => {
          const { task, details } = await this.detailed(context, found)
          return complete({ ...task, ...details })
        }),
      ],
      ['tasks/update', method((context, task, { inputResponses }) => this.update(context, task, inputResponses))],
      ['tasks/cancel', method((context, task) => this.cancel(context, task))],
    ])
  }

  /** The answer to a call that goes on as a task. */
  async created(context: CallContext, runId: string): Promise<object> {
    const { task } = await this.detailed(context, await this.found(context, runId))
    return { resultType: 'task', ...task }
  }

  /** The result of the call whose run has ended. */
  async result(context: CallContext, runId: string): Promise<object> {
    return endedResult(await this.found(context, runId))
  }

  /** How far the run of a call is. */
  async state(context: CallContext, runId: string): Promise<CallState> {
    const task = await this.found(context, runId)
    const pauses = await this.visible(context, task)
    return {
      result: isTerminal(task.status) ? endedResult(task) : null,
      isPaused: task.phase === 'paused',
      message: messageOf(task, pauses),
      inputRequests: pauses.length > 0 ? requestsOf(pauses) : null,
    }
  }

  /** Carries out the decisions in the client's responses to forms. @returns whether there was any */
  async decide(context: CallContext, responses: Readonly<Record<string, unknown>>, pauses: readonly TaskPause[]) {
    const decisions = pauses.flatMap((pause) => {
      const decision = decisionOf(pause, responses[pause.pauseId], `inputResponses.${pause.pauseId}`)
      return decision === null ? [] : [{ pause, decision }]
    })
    let refusal: unknown
    for (const { pause, decision } of decisions) {
      try {
        await this.decideOne(context, pause, decision)
      } catch (error) {
        refusal ??= error
      }
    }
    if (refusal !== undefined) throw refusal
    return decisions.length > 0
  }

  /** The pauses that responses are about; ids of others are ignored, as the protocol asks. */
  async pausesOf(context: CallContext, responses: Readonly<Record<string, unknown>>): Promise<readonly TaskPause[]> {
    const ids = Object.keys(responses)
    if (ids.length > RESPONSES_MAX)
      throw new RpcError(INVALID_PARAMS, `params.inputResponses: expected at most ${RESPONSES_MAX}; got ${ids.length}`)
    // A key is an id as it was sent to the client, which is in lower case.
    return this.deps.store.pauses(
      context.caller,
      ids.filter((id) => isUuid(id) && id === id.toLowerCase()),
    )
  }

  private async decideOne({ caller, key }: CallContext, pause: TaskPause, decision: Decision): Promise<void> {
    const mode = { background: true, key, keepOpen: () => {}, setStatus: () => {} }
    try {
      await this.deps.hosted.resume(caller, pause.type, pause.pauseId, decision, mode)
    } catch (error) {
      // A client repeats what was not acknowledged.
      if (error instanceof ApiError && error.code === 'CONFLICT' && (await this.isDecided(caller, pause, decision)))
        return
      throw error
    }
  }

  /** Whether the pause has been decided in just this way. */
  private async isDecided(caller: CallContext['caller'], { pauseId }: TaskPause, decision: Decision): Promise<boolean> {
    const [now] = await this.deps.store.pauses(caller, [pauseId])
    if (now?.status !== decision.status) return false
    if (decision.status === 'answered') return now.answer === decision.answer
    if (now.comment !== decision.comment) return false
    return decision.status === 'rejected' || now.editedInput?.text === decision.editedInput?.text
  }

  private async update(context: CallContext, task: TaskRow, responses: unknown): Promise<object> {
    if (!isObject(responses))
      throw new RpcError(INVALID_PARAMS, `params.inputResponses: expected an object; got ${shown(responses)}`)
    const pauses = await this.pausesOf(context, responses)
    await this.decide(
      context,
      responses,
      pauses.filter(({ rootRunId }) => rootRunId === task.runId),
    )
    return complete({})
  }

  private async cancel({ caller }: CallContext, task: TaskRow): Promise<object> {
    await this.deps.hosted.invocations.cancel(runOf(caller, task), 'cancelled by its MCP client')
    return complete({})
  }

  /** @throws RpcError if it is no task of the caller */
  private async found({ caller }: CallContext, taskId: unknown): Promise<TaskRow> {
    const task = typeof taskId === 'string' && isUuid(taskId) ? await this.deps.store.find(caller, taskId) : null
    if (task === null) throw new RpcError(INVALID_PARAMS, `params.taskId: task does not exist: ${shown(taskId)}`)
    return task
  }

  private async visible(context: CallContext, task: TaskRow): Promise<readonly TaskPause[]> {
    return takesForms(context) ? (await this.deps.store.pending(context.caller, task)).filter(canBeShown) : []
  }

  private async detailed(context: CallContext, task: TaskRow) {
    const pauses = await this.visible(context, task)
    const status = pauses.length > 0 ? ('input_required' as const) : STATUS_OF[task.status]
    return {
      task: {
        taskId: task.runId,
        status,
        statusMessage: messageOf(task, pauses),
        createdAt: task.createdAt.toISOString(),
        lastUpdatedAt: task.updatedAt.toISOString(),
        ttlMs: null,
        pollIntervalMs: POLL_INTERVAL_MS,
      },
      details: {
        ...(pauses.length > 0 && { inputRequests: requestsOf(pauses) }),
        ...(status === 'completed' && { result: complete(endedResult(task)) }),
      },
    }
  }
}

/** A run that has failed is a completed call whose result is an error: the service itself has done what it was asked. */
const STATUS_OF = {
  queued: 'working',
  running: 'working',
  awaiting_approval: 'working',
  awaiting_input: 'working',
  completed: 'completed',
  failed: 'completed',
  timed_out: 'completed',
  cancelled: 'cancelled',
} as const satisfies Record<RunStatus, string>

function messageOf({ status, errorMessage }: TaskRow, pauses: readonly TaskPause[]): string {
  const [pause] = pauses
  if (pause !== undefined)
    return pause.type === 'approval' ? `waits for approval of ${pause.tool}` : 'waits for an answer'
  if (status === 'awaiting_approval') return 'waits for an approval that this client cannot give'
  if (status === 'awaiting_input') return 'waits for an answer that this client cannot give'
  return errorMessage ?? status
}

function requestsOf(pauses: readonly TaskPause[]): Readonly<Record<string, object>> {
  return Object.fromEntries(pauses.map((pause) => [pause.pauseId, formOf(pause)]))
}

function complete(result: object): object {
  return { resultType: 'complete', ...result }
}

/** Whether the client can follow tasks. */
export function takesTasks({ clientCapabilities }: CallContext): boolean {
  const { extensions } = clientCapabilities
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION])
}

/** Whether the client can show forms to a person. One that names no mode shows forms. */
function takesForms({ clientCapabilities }: CallContext): boolean {
  const { elicitation } = clientCapabilities
  return isObject(elicitation) && (elicitation.form !== undefined || elicitation.url === undefined)
}

function missingCapability(): RpcError {
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } }
  return new RpcError(MISSING_CAPABILITY, `the client must declare the extension ${TASKS_EXTENSION}`, {
    requiredCapabilities,
  })
}

function paramsOf(params: RawJson | undefined): Record<string, unknown> {
  const value = params?.parse()
  if (!isObject(value)) throw new RpcError(INVALID_PARAMS, 'params: expected an object')
  return value
}
