import { lookup } from '../../base/lookup.ts'
import type { SpanKind } from '../traces/conventions.ts'

/** What an observation is, and what the service takes that for. */
export const SPAN_KINDS = {
  span: 'other',
  generation: 'model',
  event: 'other',
  agent: 'agent',
  tool: 'tool',
  chain: 'other',
  retriever: 'other',
  evaluator: 'other',
  embedding: 'model',
  guardrail: 'other',
} as const satisfies Record<string, SpanKind>

export type Kind = keyof typeof SPAN_KINDS

const KINDS = Object.keys(SPAN_KINDS) as Kind[]

/** What an ingestion event reports. */
export type EventType =
  | { readonly of: 'trace' | 'score' | 'log' }
  /** `kind` is null where the body names it. */
  | { readonly of: 'observation'; readonly kind: Kind | null; readonly isCreate: boolean }

const TYPES = lookup<EventType>({
  'trace-create': { of: 'trace' },
  'score-create': { of: 'score' },
  'sdk-log': { of: 'log' },
  ...Object.fromEntries(KINDS.map((kind) => [`${kind}-create`, { of: 'observation', kind, isCreate: true }])),
  'span-update': { of: 'observation', kind: 'span', isCreate: false },
  'generation-update': { of: 'observation', kind: 'generation', isCreate: false },
  'observation-create': { of: 'observation', kind: null, isCreate: true },
  'observation-update': { of: 'observation', kind: null, isCreate: false },
})

/** Undefined for a type that is not supported. */
export function eventTypeOf(type: string): EventType | undefined {
  return TYPES.get(type)
}

export const EVENT_TYPE_NAMES = [...TYPES.keys()].join(', ')

/** The kind that the body of an `observation-create` or `observation-update` names, such as `GENERATION`. */
export function kindOfBody(type: string): Kind | undefined {
  const name = type.toLowerCase()
  return KINDS.find((kind) => kind === name)
}
