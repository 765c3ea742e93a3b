import type { JsonObject } from '../../../client/json.ts'
import type { ToolUse } from '../talk.ts'
import texts from './texts.json' with { type: 'json' }

/** What people and agents of a bicycle shop say in the demo. A name in braces stands for a fact of the conversation. */
interface Texts {
  readonly people: { readonly customers: readonly string[]; readonly colleagues: readonly string[] }
  readonly facts: {
    readonly items: readonly { readonly item: string; readonly price: number }[]
    readonly carriers: readonly string[]
    readonly places: readonly string[]
    readonly days: readonly string[]
  }
  readonly support: {
    readonly system: string
    readonly cases: readonly SupportCase[]
    /** How a turn can go wrong. */
    readonly failures: readonly SupportFailure[]
  }
  readonly review: { readonly system: string; readonly cases: readonly ReviewCase[] }
  readonly research: { readonly system: string; readonly cases: readonly ResearchCase[] }
  readonly invoices: {
    readonly system: string
    readonly suppliers: readonly { readonly name: string; readonly country: string; readonly goods: string }[]
  }
  readonly onCall: { readonly system: string; readonly analyst: string; readonly alerts: readonly Alert[] }
  readonly catalogue: {
    readonly system: string
    readonly feeds: readonly string[]
    readonly texts: readonly { readonly product: string; readonly text: string }[]
  }
  readonly scores: { readonly praise: readonly string[]; readonly complaints: readonly string[] }
}

/** A conversation with a customer: each turn is a run of the same session. */
interface SupportCase {
  readonly intent: string
  readonly turns: readonly SupportTurn[]
}

export interface SupportTurn {
  readonly customer: string
  readonly uses: readonly ToolUse[]
  readonly answer: string
}

interface SupportFailure {
  readonly tool: string
  readonly error: string
  readonly exactMs?: number
  readonly message: string
  readonly detail: JsonObject
}

export interface ReviewCase {
  readonly repository: string
  readonly title: string
  /** With what the reviewer says about each, if anything. */
  readonly files: readonly { readonly path: string; readonly lines: number; readonly finding?: string }[]
  readonly verdict: string
  /** After the author has pushed again. */
  readonly second?: string
}

export interface ResearchCase {
  readonly question: string
  readonly queries: readonly string[]
  readonly sources: readonly { readonly url: string; readonly says: string }[]
  readonly answer: string
  /** What the analyst asks afterwards, in the same session. */
  readonly followUp?: { readonly question: string; readonly answer: string }
}

export interface Alert {
  readonly alert: string
  readonly service: string
  readonly lines: readonly string[]
  readonly cause: string
  readonly advice: string
  readonly severity: 'low' | 'high'
}

export const TEXTS = texts as Texts
