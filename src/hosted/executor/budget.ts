import { costAt, type Prices } from '../../base/conventions/prices.ts'
import { runKey } from '../../base/ids.ts'
import type { ModelAnswer, ModelUsage } from '../../outbound/model/model.ts'
import { inTransaction, type TransactionSql } from '../../stores/postgres/connect.ts'
import type { HostedContext } from '../run/context.ts'
import { type Budget, budgetsOver } from '../run/plan.ts'
import type { Cost, HostedRun, RunProgress } from '../run/run.ts'
import { executedBy, phaseIs } from '../store/fragments.ts'
import { OwnershipLost } from '../store/progress.ts'
import { conversationOf } from './conversation.ts'

/** Why a run has to end: it has exceeded a budget, or its next call would. */
interface Overrun {
  readonly message: string
  readonly detail: Record<string, unknown>
}

/** Assumed for an answer whose length is unknown. */
const OUTPUT_TOKENS_GUESS = 1_000
/** A lower bound: most texts have fewer tokens. */
const CHARACTERS_PER_TOKEN = 3

/**
 * The budgets that apply to a run (docs/hosted-agents.md#budgets: `budget_usd`): its own and those of its ancestors.
 * Each budget covers its run and all descendants.
 *
 * Before each model call the spent amounts are summed. Where runs share a budget, a call first reserves its estimated
 * cost, under a lock on the root run. While other calls are in flight, a call starts only if the budget has room for
 * all of them; otherwise it waits. So a budget is exceeded by at most its last call, plus what calls in flight cost
 * beyond their estimates.
 */
export class RunBudget {
  /** What the descendants had spent at the last check. None of them is executing while this run asks its model. */
  private belowUsd = 0
  private readonly budgets: readonly Budget[]

  /** @param spentUsd what its answers have cost so far */
  constructor(
    private readonly context: HostedContext,
    private readonly run: HostedRun,
    private spentUsd: number,
  ) {
    this.budgets = budgetsOver(run)
  }

  /** What an answer costs. If the price of its model is unknown, it costs nothing but still counts against budgets. */
  async costOf(answer: ModelAnswer): Promise<Cost> {
    const prices = await this.context.prices.loaded()
    const at = this.context.clock.now()
    const { model } = this.run.plan.agent
    const costUsd = prices.costUsd(answer.model, answer.usage, at) ?? prices.costUsd(model, answer.usage, at) ?? 0
    const isKnown = prices.costUsd(model, answer.usage, at) !== null
    return { costUsd, spentUsd: isKnown ? costUsd : Math.max(costUsd, this.priceOf(prices, answer.usage)) }
  }

  /**
   * Whether the model may be called once more: null if it may. Waits for other calls while they reserve the budget.
   * @throws OwnershipLost; the signal's reason
   */
  async admit(progress: RunProgress, signal: AbortSignal): Promise<Overrun | null> {
    const last = progress.steps.at(-1)
    // The next request is at least as long as the last one plus its answer.
    const known = last === undefined ? 0 : last.inputTokens + last.outputTokens
    if (this.budgets.length === 0) return null
    const prices = await this.context.prices.loaded()
    // What came from the provider's cache is in it, and comes from there again.
    const cacheReadTokens = last?.cacheReadTokens ?? 0
    const atLeast = this.priceOf(prices, { inputTokens: known, outputTokens: 0, cacheReadTokens })
    const isShared = this.budgets[0]!.runId !== this.run.runId
    if (!isShared && progress.calls.every(({ childRunId }) => childRunId === null))
      return this.ownOverrun('would exceed', this.spentUsd + atLeast)
    const estimate = isShared ? Math.max(atLeast, this.priceOf(prices, expectedUsage(progress, known))) : atLeast
    for (;;) {
      signal.throwIfAborted()
      const change = this.context.budgetChanges.next(this.key, signal)
      const verdict = await this.reserve(atLeast, estimate)
      if (verdict !== 'full') return verdict
      await change
    }
  }

  /**
   * Whether an answer of this cost exceeds the run's own budget. Those of its ancestors are checked before the next
   * call.
   */
  overrunAfter({ spentUsd }: Cost): Overrun | null {
    return this.ownOverrun('has exceeded', this.spentUsd + this.belowUsd + spentUsd)
  }

  /** Call once a model call has ended and its cost is stored. */
  settled({ spentUsd }: Cost): void {
    this.spentUsd += spentUsd
    if (this.budgets.length > 0) this.context.budgetChanges.notify(this.key)
  }

  /** @returns `full`: there is room only once calls in flight have ended */
  private async reserve(atLeast: number, estimate: number): Promise<Overrun | 'full' | null> {
    const { sql, owner } = this.context
    return inTransaction(sql, async (tx) => {
      const sums = await this.lockedSums(tx)
      const verdict = this.judge(sums, atLeast, estimate)
      const { count } = await tx`
        update hosted_runs set reserved_usd = ${verdict === null ? estimate : 0}
        where ${executedBy(tx, this.run, owner)}`
      if (count === 0) throw new OwnershipLost()
      return verdict
    })
  }

  /** The total that each budget has to cover so far, in order. No other call can reserve until the transaction ends. */
  private async lockedSums(tx: TransactionSql): Promise<Sum[]> {
    const { workspaceId, runId, rootRunId } = this.run
    await tx`
      select from hosted_runs where workspace_id = ${workspaceId} and run_id = ${this.budgets[0]!.runId}
      for no key update`
    const rows = await tx<(Sum & { readonly runId: string })[]>`
      select b.run_id as "runId", sum(h.spent_usd) as spent,
        coalesce(sum(h.reserved_usd) filter (where ${phaseIs(tx, 'executing')} and h.run_id <> ${runId}), 0) as reserved
      from unnest(${this.budgets.map((budget) => budget.runId)}::uuid[]) as b (run_id) join hosted_runs h
        on h.workspace_id = ${workspaceId} and h.root_run_id = ${rootRunId} and b.run_id = any(h.budgeted_by)
      group by b.run_id`
    return this.budgets.map((budget) => rows.find((row) => row.runId === budget.runId)!)
  }

  private judge(sums: readonly Sum[], atLeast: number, estimate: number): Overrun | 'full' | null {
    let isFull = false
    for (const [index, { runId, usd }] of this.budgets.entries()) {
      const { spent, reserved } = sums[index]!
      if (runId === this.run.runId) this.belowUsd = spent - this.spentUsd
      if (spent + atLeast > usd) {
        if (runId === this.run.runId) return this.ownOverrun('would exceed', spent + atLeast)
        const message = `the run would exceed the budget of ${usd} USD of run ${runId}, which it is part of (budget_usd)`
        return { message, detail: { budget_usd: usd, spent_usd: spent + atLeast, budget_run_id: runId } }
      }
      if (reserved > 0 && spent + reserved + estimate > usd) isFull = true
    }
    return isFull ? 'full' : null
  }

  private ownOverrun(what: 'would exceed' | 'has exceeded', spent: number): Overrun | null {
    const { budgetUsd } = this.run.plan.agent
    if (budgetUsd === null || spent <= budgetUsd) return null
    const message = `the run ${what} its budget of ${budgetUsd} USD (budget_usd)`
    return { message, detail: { budget_usd: budgetUsd, spent_usd: spent } }
  }

  /** A model of unknown price is charged as the most expensive one, so that no budget is exceeded unnoticed. */
  private priceOf(prices: Prices, usage: ModelUsage): number {
    const known = prices.costUsd(this.run.plan.agent.model, usage, this.context.clock.now())
    if (known !== null) return known
    return costAt(prices.highest(), usage)
  }

  private get key(): string {
    return runKey(this.run.workspaceId, this.run.rootRunId)
  }
}

/** What the runs under a budget have spent, and what their calls in flight have reserved, in USD. */
interface Sum {
  readonly spent: number
  readonly reserved: number
}

function expectedUsage(progress: RunProgress, knownTokens: number): ModelUsage {
  const { maxOutputTokens } = progress.run.plan.agent
  const outputs = progress.steps.map(({ outputTokens }) => outputTokens)
  const characters = conversationOf(progress).reduce((sum, message) => sum + JSON.stringify(message).length, 0)
  return {
    inputTokens: Math.max(knownTokens, Math.ceil(characters / CHARACTERS_PER_TOKEN)),
    outputTokens: maxOutputTokens ?? Math.max(OUTPUT_TOKENS_GUESS, ...outputs),
  }
}
