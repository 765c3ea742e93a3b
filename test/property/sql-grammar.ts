import type { Random } from '../support/random.ts'

/** Queries of legal and hostile parts, most of which parse. */

export interface Bait {
  /** The database of the stored tables. */
  readonly database: string
  readonly workspaces: readonly string[]
  /** A file that SQL must not read. */
  readonly file: string
}

/** A SELECT in which about one part in three is hostile. */
export function fuzzQuery(r: Random, bait: Bait): string {
  if (r.bool(0.4)) return sound(r, bait)
  const text = select({ r, bait, hostile: r.pick([0, 0.05, 0.2]) }, r.int(1, 3))
  return r.bool(0.1) ? mangled(r, text) : text
}

/** A meaningful query, sometimes with one hostile part: it runs, or only that part stops it. */
function sound(r: Random, bait: Bait): string {
  const g = { r, bait, hostile: 0 }
  const value = (depth: number): string => {
    if (r.bool(0.03)) return `toString(${hostile(g)})`
    if (depth <= 0) return `toString(${r.pick(COLUMNS)})`
    const a = () => value(depth - 1)
    return r.pick([
      () => a(),
      () => `concat(${a()}, ${a()})`,
      () => `if(${a()} < ${a()}, ${a()}, upper(${a()}))`,
      () => `toString(throwIf(${a()} like '%k7F%', ${a()}))`,
      () => `arrayMap(x -> concat(x, ${a()}), ['a'])[1]`,
      () => `ifNull((select any(event_id) from events where ${a()} != ''), '')`,
      () => `toString(${a()} in (select ${a()} from events))`,
      () => `toString(toUInt8OrZero(substring(${a()}, 5)))`,
      () => `max(${a()}) over (partition by ${a()})`,
      () => `toString(length(extractAll(${a()}, '[a-z]')))`,
    ])()
  }
  const from = r.pick([
    'events',
    '(select * from events)',
    'events as e any left join runs as r on e.run_id = r.run_id',
  ])
  const where = `where ${r.pick(['1', `toUInt64OrZero(${r.pick(['event_id', 'payload.word::String'])}) = 0`, `type not like '%k7F%'`])}`
  return r.pick([
    () => `select ${value(2)} as v, * from events ${where} order by ${r.pick(['seq', 'v'])}`,
    () =>
      `select ${value(3)}, ${value(1)} from ${r.pick(['events', '(select * from events)'])} ${where} limit ${r.int(1, 90)}`,
    () =>
      `select groupUniqArray(${value(0)}) as v, count(), max(seq), min(toString(payload.word)) from events ${where}`,
    () => `select ${value(0)} as v, count() from events ${where} group by v having max(throwIf(v like '%k7F%')) = 0`,
    () => `with w as (select ${value(2)} as v from events) select uniq(v), any(v), count() from w`,
    () =>
      `select any(agent_name), count(), any(type) from ${from.replace('(select * from events)', 'events as e cross join runs')} ${where}`,
    () => `select * from ${r.pick(['runs', 'tasks'])} where throwIf(status like '%k7F%') = 0`,
  ])()
}

interface Grammar {
  readonly r: Random
  readonly bait: Bait
  /** The probability that a part is hostile. */
  readonly hostile: number
}

function select(g: Grammar, depth: number): string {
  const { r } = g
  const maybe = (probability: number, text: () => string) => (r.bool(probability) ? text() : '')
  const value = () => expression(g, depth)
  const parts = [
    maybe(0.15, () => `with ${r.bool() ? `${name(g)} as (${select(g, depth - 1)})` : `${value()} as ${name(g)}`}`),
    `select ${maybe(0.1, () => 'distinct ')}${list(g, depth)}`,
    maybe(0.9, () => `from ${source(g, depth)}`),
    maybe(0.1, () => `${r.pick(['', 'left '])}array join ${value()} as ${name(g)}`),
    maybe(0.08, () => `prewhere ${value()}`),
    maybe(0.4, () => `where ${value()}`),
    maybe(0.2, () => `group by ${r.pick(['', 'rollup', 'grouping sets '])}(${value()})`),
    maybe(0.1, () => `having ${value()}`),
    maybe(0.2, () => `order by ${value()}${maybe(0.2, () => ` with fill from 0 to ${r.int(1, 9)}`)}`),
    maybe(0.1, () => `limit ${r.int(0, 5)} by ${value()}`),
    maybe(0.3, () => `limit ${r.pick([String(r.int(0, 30)), value()])}`),
    maybe(g.hostile, () => r.pick(['settings readonly = 0', 'settings additional_table_filters = {}', 'format CSV'])),
  ]
  const whole = parts.filter((part) => part !== '').join(r.pick([' ', '\n', ' /* c */ ']))
  if (depth <= 0 || r.bool(0.85)) return whole
  return `${whole} ${r.pick(['union all', 'union distinct', 'intersect', 'except'])} ${select(g, depth - 1)}`
}

function list(g: Grammar, depth: number): string {
  const { r } = g
  if (r.bool(0.2))
    return r.pick(['*', '* except (seq)', "columns('.*id')", 'e.*', `* replace (${expression(g, depth)} as seq)`])
  return Array.from({ length: r.int(1, 3) }, () => {
    const value = expression(g, depth)
    return r.bool(0.3) ? `${value} as ${name(g)}` : value
  }).join(', ')
}

function source(g: Grammar, depth: number): string {
  const { r } = g
  const one = table(g, depth)
  if (r.bool(0.75)) return one
  const kind = r.pick([
    'join',
    'left join',
    'any join',
    'semi join',
    'anti join',
    'full join',
    'asof join',
    'cross join',
    'paste join',
    ',',
  ])
  const on = r.pick([' using run_id', ` on e.run_id = r.run_id and ${expression(g, depth - 1)}`, ''])
  return `${one} as e ${kind} ${table(g, depth - 1)} as r${on}`
}

function table(g: Grammar, depth: number): string {
  const { r, bait } = g
  if (r.bool(g.hostile)) {
    return r.pick([
      `${bait.database}.${r.pick(['events', 'runs', 'tasks', 'run_changes', 'task_changes'])}`,
      `\`${bait.database}\`."events"`,
      `system.${r.pick(['tables', 'processes', 'settings', 'parts', 'one'])}`,
      `file('${bait.file}', 'LineAsString')`,
      `merge('${bait.database}', '.*')`,
      `mergeTreeIndex('${bait.database}', 'events')`,
      `view(select * from ${bait.database}.events)`,
      `loop(${bait.database}.events)`,
      `remote('127.0.0.1', '${bait.database}', 'events')`,
      `values('a String, b String${r.pick([' ', '\\n', '\\t', '/**/'])}${r.pick(['alias', 'default', 'MATERIALIZED'])}${r.pick([' ', '\\n', '('])}file(\\'${bait.file}\\')', 'x')`,
      `numbers((select count() from ${bait.database}.events))`,
    ])
  }
  if (depth > 0 && r.bool(0.4)) return `(${select(g, depth - 1)})`
  return r.pick([
    'events',
    'events',
    'events',
    'runs',
    'tasks',
    'numbers(9)',
    "values('a UInt8, b String', (1, 'x'))",
    name(g),
  ])
}

function expression(g: Grammar, depth: number): string {
  const { r } = g
  if (r.bool(g.hostile / 2)) return hostile(g)
  if (depth <= 0) return leaf(g)
  const a = () => expression(g, depth - 1)
  return r.pick([
    () => leaf(g),
    () => `${r.pick(CALLS)}(${a()})`,
    () => `${r.pick(CALLS)}(${a()}, ${a()})`,
    () =>
      `${a()} ${r.pick(['=', '<', '+', '||', 'like', 'and', 'or', 'in', 'not in', '%', 'is distinct from'])} ${a()}`,
    () => `(${a()})::${r.pick(TYPES)}`,
    () => `if(${a()}, ${a()}, ${a()})`,
    () => `throwIf(${a()} like '%k7F%', ${r.pick(["'told'", 'event_id', 'toString(payload)'])})`,
    () => `arrayMap(${r.pick(['x', '(x, y)'])} -> ${a()}, ${a()})`,
    () => `(select ${a()} from ${table(g, depth - 1)} limit 1)`,
    () => `${a()} in (${select(g, depth - 1)})`,
    () =>
      `${r.pick(['max', 'any', 'groupArray', 'count', 'argMax', 'uniq'])}(${a()}) over (partition by ${a()} order by ${a()})`,
    () => `case when ${a()} then ${a()} end`,
    () => `[${a()}, ${a()}][${r.int(-3, 5)}]`,
    () => `(${a()}, ${a()}).${r.int(1, 3)}`,
  ])()
}

function leaf({ r, bait }: Grammar): string {
  return r.pick([
    ...['seq', 'event_id', 'run_id', 'type', 'level', 'payload', 'occurred_at', 'agent_name', 'status', 'tags', 'name'],
    ...[
      'payload.word',
      'payload.a.b',
      'input.word',
      'output',
      'e.payload.`word`',
      "payload.`x'y`",
      'payload.`a) --`',
      'payload.^a',
    ],
    ...[
      'payload.a[].b',
      'payload.word.:String',
      'workspace_id',
      '_part',
      'events',
      'e',
      'x',
      '*',
      'user',
      'now',
      'NULL',
      '1',
      '-1',
    ],
    ...[
      "''",
      "'-- ) ; '",
      "'\\''",
      '1e308',
      '0',
      '[]',
      "map('a', 1)",
      '{p:String}',
      '{n:UInt8}',
      '{t:Array(String)}',
      `'${bait.file}'`,
    ],
    ...[`toUUID('${r.pick(bait.workspaces)}')`, "'%k7F%'", "type::Enum8('a' = 1)", '$$ quoted $$'],
  ])
}

function hostile({ r, bait }: Grammar): string {
  return r.pick([
    `file('${bait.file}')`,
    `arrayMap(file, ['${bait.file}'])`,
    `arraySort((file) as f, ['${bait.file}', '${bait.file}'])`,
    `\`file\`('${bait.file}')`,
    `(select any(payload) from ${bait.database}.events)`,
    `1 in ${bait.database}.runs`,
    `${bait.database}.events.payload`,
    `joinGet('${bait.database}.runs', 'agent_name', 1)`,
    `dictGet('${bait.database}.runs', 'agent_name', 1)`,
    "getSetting('additional_table_filters')",
    'currentDatabase()',
    'currentDatabase',
    'hostName()',
    'currentUser',
    "cast('x', concat('Aggregate', 'Function(sum, UInt64)'))",
    "cast('x', {p:String})",
    '{i:Identifier}',
    "{q:Enum8('}' = 1)}",
    "{q:String /*'*/}",
    `{q:String /*}' */}`,
    "arrayReduce('sum', [1])",
    'sumState(seq)',
    "formatRow('CSV', payload)",
    '(select 1 settings readonly = 0)',
    '(select * from system.one)',
    `1) union all select payload from ${bait.database}.events --`,
  ])
}

/** A name that shadows one of ours, has a meaning elsewhere, or contains special characters. */
function name({ r, bait }: Grammar): string {
  return r.pick([
    ...[
      'events',
      'runs',
      'tasks',
      'e',
      'r',
      'x',
      'seq',
      'payload',
      'workspace_id',
      'file',
      'upper',
      'user',
      '`payload.word`',
    ],
    ...[
      `\`${bait.database}\``,
      '`a)b`',
      "`it's`",
      '`{p:String}`',
      '`x (alias payload)`',
      '`x (alias payload`',
      '`-- `',
      '`a"b`',
      '`system.one`',
    ],
  ])
}

/** The text with one character added, removed or changed. */
function mangled(r: Random, text: string): string {
  const at = r.int(0, text.length - 1)
  const sign = r.pick([
    "'",
    '`',
    '"',
    '(',
    ')',
    '{',
    '}',
    '\\',
    '\0',
    '\n',
    ';',
    '--',
    '/*',
    '*/',
    '$$',
    '.',
    '\u2028',
    '\ud800',
    '',
    '\uff07',
  ])
  return text.slice(0, at) + sign + text.slice(at + r.int(0, 1))
}

const COLUMNS = [
  'seq',
  'event_id',
  'run_id',
  'type',
  'level',
  'payload.word',
  'payload.a.b',
  'payload',
  'occurred_at',
  'agent_id',
]
const CALLS = [
  ...[
    'toString',
    'length',
    'upper',
    'sum',
    'count',
    'max',
    'any',
    'groupArray',
    'uniq',
    'toUInt8',
    'toUUID',
    'concat',
    'intDiv',
    'has',
  ],
  ...[
    'arraySort',
    'arrayJoin',
    'arrayElement',
    'tuple',
    'map',
    'toJSONString',
    'JSONAllPaths',
    'JSONExtractString',
    'hex',
    'unhex',
    'range',
  ],
  ...[
    'extractAll',
    'match',
    'replaceRegexpAll',
    'splitByChar',
    'format',
    'quantile(0.5)',
    'topK(3)',
    'lagInFrame',
    'ignore',
    'materialize',
  ],
  ...[
    'toTypeName',
    'getSubcolumn',
    'dynamicType',
    'assumeNotNull',
    'accurateCastOrNull',
    'coalesce',
    'formatDateTime',
    'cityHash64',
    'not',
  ],
  ...[
    'countIf',
    'argMax',
    'sumMap',
    'windowFunnel(10)',
    "sequenceMatch('(?1)')",
    'toDateTime64',
    'toStartOfInterval',
    'untuple',
    'exists',
  ],
]
const TYPES = [
  'String',
  'UInt8',
  'Float64',
  'Nullable(Int64)',
  'Array(String)',
  'JSON',
  'Dynamic',
  'UUID',
  'Tuple(a String)',
  "DateTime64(3, 'UTC')",
]
