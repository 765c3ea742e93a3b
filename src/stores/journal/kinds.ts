/** What is to be decided about a kind of rows, see {@link KINDS}. */
interface Declared {
  /** Its number in the heads of frames, and its place among the kinds in lists. A stored format: never change or reuse it. */
  readonly frame: number
  /** Whether feeds show it, and webhooks deliver it. */
  readonly isActivity: boolean
  /** Its place in a commit. A run's start precedes its tasks and events. */
  readonly commitOrder: number
  /** Its place in a load of the sink. Runs come last, so that a run that appears as completed has all its earlier events. */
  readonly loadOrder: number
  /** Its place among the kinds that the outbox carries, in the heads of NATS messages, which have three: a stored format. */
  readonly outboxOrder: 0 | 1 | 2 | null
  /** ClickHouse's table of all its rows, by which feeds replay it and which retention limits. */
  readonly rows: string
  /** ClickHouse's tables of what follows from its rows. Tenant SQL reads them only within the limits of a workspace. */
  readonly derived: readonly Derived[]
  /** The table that the search in texts reads. Null: the search does not find it. */
  readonly searched: string | null
  /** Whether the index of words of that table is built in the background, and not with each load. */
  readonly isIndexedLater: boolean
}

interface Derived {
  readonly table: string
  /** The view that fills it. Null: the sink loads it. */
  readonly view: string | null
  /** Whether it is subject to retention. Those that are have a partition for each day. */
  readonly expires: boolean
}

/**
 * The kinds of rows that the journal has, and everything that is decided by kind and is not code. Where code differs by
 * kind, types require a case for each: a kind that is added here alone does not compile (`test/unit/kinds.slow.test.ts`).
 */
export const KINDS = {
  event: {
    frame: 0,
    isActivity: true,
    commitOrder: 2,
    loadOrder: 0,
    outboxOrder: 2,
    rows: 'events',
    derived: [
      { table: 'pauses', view: 'events_to_pauses', expires: false },
      { table: 'alert_states', view: 'events_to_alert_states', expires: false },
    ],
    searched: 'events',
    isIndexedLater: true,
  },
  // ClickHouse copies the changes of tasks itself, because they are as many and as large as events.
  task: {
    frame: 1,
    isActivity: true,
    commitOrder: 1,
    loadOrder: 1,
    outboxOrder: 1,
    rows: 'task_changes',
    derived: [{ table: 'tasks', view: 'task_changes_to_tasks', expires: false }],
    searched: 'task_changes',
    isIndexedLater: true,
  },
  run: {
    frame: 2,
    isActivity: true,
    commitOrder: 0,
    loadOrder: 3,
    outboxOrder: 0,
    rows: 'run_changes',
    derived: [{ table: 'runs', view: null, expires: false }],
    searched: 'runs',
    isIndexedLater: false,
  },
  delivery: {
    frame: 3,
    isActivity: false,
    commitOrder: 4,
    loadOrder: 4,
    outboxOrder: null,
    rows: 'deliveries',
    derived: [],
    searched: null,
    isIndexedLater: false,
  },
  score: {
    frame: 4,
    isActivity: true,
    commitOrder: 3,
    loadOrder: 2,
    outboxOrder: null,
    rows: 'score_changes',
    derived: [{ table: 'scores', view: 'score_changes_to_scores', expires: true }],
    searched: null,
    isIndexedLater: false,
  },
} as const satisfies Readonly<Record<string, Declared>>

type Kinds = typeof KINDS

/** The kind of a row. */
export type RowKind = keyof Kinds

/** The kinds that feeds show. */
export type ActivityKind = { [Kind in RowKind]: Kinds[Kind]['isActivity'] extends true ? Kind : never }[RowKind]

/** The kinds that the outbox carries. */
export type OutboxKind = { [Kind in RowKind]: Kinds[Kind]['outboxOrder'] extends number ? Kind : never }[RowKind]

/** By their numbers, which have no gaps. */
const ALL = kindsBy(({ frame }) => frame)
export const ACTIVITY_KINDS = ALL.filter(isActivity)
export const COMMIT_ORDER = kindsBy(({ commitOrder }) => commitOrder)
export const OUTBOX_ORDER = kindsBy(({ outboxOrder }) => outboxOrder ?? 0).filter(isInOutbox)

/** What the sink loads, in this order: the rows of a kind, into these tables. */
export const LOADED_TABLES: readonly (readonly [RowKind, readonly string[]])[] = kindsBy(
  ({ loadOrder }) => loadOrder,
).map((kind) => [kind, [...derivedOf(kind, ({ view }) => view === null), KINDS[kind].rows]])

/** All tables whose rows have a position in the journal. */
export const POSITIONED_TABLES = ALL.flatMap((kind) => [KINDS[kind].rows, ...derivedOf(kind, () => true)])

/** The views that fill tables. */
export const VIEWS = ALL.flatMap((kind) => declared(kind).derived.flatMap(({ view }) => view ?? []))

/** The tables that feeds replay. */
export const ACTIVITY_TABLES: readonly string[] = ACTIVITY_KINDS.map((kind) => KINDS[kind].rows)

/** The tables that retention limits. */
export const EXPIRING_TABLES = ALL.flatMap((kind) => [KINDS[kind].rows, ...derivedOf(kind, ({ expires }) => expires)])

/** The tables that the search in texts reads. */
export const SEARCHED_TABLES: readonly string[] = ALL.flatMap((kind) => KINDS[kind].searched ?? [])

/** Those of {@link SEARCHED_TABLES} whose index of words is built in the background. */
export const TABLES_INDEXED_LATER: readonly string[] = ALL.flatMap((kind) =>
  KINDS[kind].isIndexedLater ? (KINDS[kind].searched ?? []) : [],
)

/** @returns the kind of the frames with this number */
export function kindOfFrame(frame: number): RowKind {
  return ALL[frame]
}

export function isActivity(kind: RowKind): kind is ActivityKind {
  return KINDS[kind].isActivity
}

function isInOutbox(kind: RowKind): kind is OutboxKind {
  return KINDS[kind].outboxOrder !== null
}

function kindsBy(order: (declared: Declared) => number): RowKind[] {
  return (Object.keys(KINDS) as RowKind[]).sort((a, b) => order(KINDS[a]) - order(KINDS[b]))
}

function derivedOf(kind: RowKind, includes: (derived: Derived) => boolean): string[] {
  return declared(kind)
    .derived.filter(includes)
    .map(({ table }) => table)
}

/** Not as narrow as the types of {@link KINDS}, which differ. */
function declared(kind: RowKind): Declared {
  return KINDS[kind]
}
