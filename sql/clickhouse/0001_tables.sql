-- What the sink loads from the journal into ClickHouse. Rows never change: a newer state of a run or task is another row,
-- and the one with the highest seq wins. Times are UTC milliseconds; free-form JSON is kept as the text that was sent.
--
-- Events and changes are partitioned by the day of acceptance, so that late events do not multiply the parts. Settings:
--   non_replicated_deduplication_window  remembers the tokens of that many loads, so that a repeat changes nothing;
--   fsync_*, min_*_to_fsync_after_merge  a loaded row survives a power cut: the journal drops what has been loaded;
--   min_parts_to_merge_at_once           by default, small parts are merged so early that each row of a run is rewritten 14
--                                        to 24 times instead of 4, which costs twice as much as inserting it (measured).

-- Search --------------------------------------------------------------------------------------------------------------
--
-- `search_text` is what `GET /runs?q=` and SQL search: in lower case, and with a space for each escape of JSON and each
-- typographic mark, so that these separate words. `said` is its index of words.
--
-- Building the index takes five times as long as inserting the row, so inserts do not build it (see `INSERT_SETTINGS` in
-- src/stores/clickhouse/client.ts). Merges do not, either, where rows are many: src/activity/runs/search/indexing.ts does, later, once for
-- each part. Words are looked for in the text of rows that are not indexed yet.

-- The history of activity -------------------------------------------------------------------------------------------------

-- `seq_range` finds a range of positions in a table that is ordered by run. `runs_seen_exactly` finds the granules of a
-- run: its events are adjacent within those of its agent, so a query by run alone would search each agent's range of each
-- day. With a false positive rate of 1% it would match dozens of irrelevant granules of a large table; a lower rate costs
-- little.
--
-- `hourly_counts` answers queries that only count, without reading the events. Each part has its own counts, so they
-- cannot differ from its rows: deleting rows rebuilds the counts of their part. Merges compute it, because inserts would
-- take 15% longer; parts that have not been merged yet are read.
create table if not exists {database}.events (
  workspace_id UUID,
  agent_id     UUID,
  run_id       UUID,
  seq          UInt64,
  event_id     String,
  type         LowCardinality(String),
  level        Enum8('debug' = 1, 'info' = 2, 'warn' = 3, 'error' = 4),
  payload      String,
  occurred_at  DateTime64(3, 'UTC'),
  received_at  DateTime64(3, 'UTC'),
  -- Absent from the blocks of events that name no task.
  task_id      Nullable(UUID),
  epoch        LowCardinality(String),
  search_text  String alias lowerUTF8(replaceRegexpAll(payload, '\\\\.|[\n\r\t“”‘’„«»‹›—–…•·、。「」（）]', ' ')),
  index said search_text type text(tokenizer = 'splitByNonAlpha'),
  index seq_range seq type minmax granularity 1,
  index runs_seen_exactly run_id type bloom_filter(0.0001) granularity 1,
  projection hourly_counts (
    select workspace_id, agent_id, type, level, toStartOfHour(occurred_at), toStartOfHour(received_at), count()
    group by workspace_id, agent_id, type, level, toStartOfHour(occurred_at), toStartOfHour(received_at)
  )
)
engine = MergeTree
partition by toDate(received_at)
order by (workspace_id, agent_id, run_id, seq)
settings
  exclude_materialize_skip_indexes_on_merge = 'said',
  materialize_projections_on_insert = 0,
  materialize_projections_on_merge = 1,
  lightweight_mutation_projection_mode = 'rebuild',
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

-- The changes of runs and tasks, in journal order: what feeds replay once the journal's files have been deleted. Without
-- input and output of runs, which feeds do not contain. `bytes` is the size of a row's text, so that the size of a page is
-- known without reading it.
create table if not exists {database}.run_changes (
  workspace_id     UUID,
  agent_id         UUID,
  run_id           UUID,
  agent_name       String,
  agent_version    Int64,
  runtime_type     LowCardinality(String),
  status           LowCardinality(String),
  trigger_type     LowCardinality(String),
  external_run_id  Nullable(String),
  parent_run_id    Nullable(UUID),
  session_id       Nullable(String),
  external_user_id Nullable(String),
  tags             Array(String),
  metadata         String,
  error_message    Nullable(String),
  error_detail     Nullable(String),
  created_at       DateTime64(3, 'UTC'),
  started_at       Nullable(DateTime64(3, 'UTC')),
  completed_at     Nullable(DateTime64(3, 'UTC')),
  duration_ms      Nullable(Int64),
  waiting_ms       Int64,
  waiting_since    Nullable(DateTime64(3, 'UTC')),
  input_tokens     Int64,
  output_tokens    Int64,
  cache_read_tokens  Int64,
  cache_write_tokens Int64,
  reasoning_tokens Int64,
  cost_usd         Float64,
  event_count      Int64,
  last_event_at    Nullable(DateTime64(3, 'UTC')),
  -- What a paused run waits for.
  pending          Nullable(String),
  -- Repeats an earlier state with newer counts.
  is_recount       Bool,
  seq              UInt64,
  received_at      DateTime64(3, 'UTC'),
  epoch            LowCardinality(String),
  bytes            UInt64 materialized length(metadata) + arraySum(tag -> length(tag), tags)
                     + ifNull(length(error_message), 0) + ifNull(length(error_detail), 0),
  index runs_seen run_id type bloom_filter(0.01) granularity 1
)
engine = MergeTree
partition by toDate(received_at)
order by (workspace_id, seq)
settings
  min_parts_to_merge_at_once = 16,
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

create table if not exists {database}.task_changes (
  workspace_id   UUID,
  agent_id       UUID,
  run_id         UUID,
  task_id        UUID,
  parent_task_id Nullable(UUID),
  name           String,
  status         LowCardinality(String),
  input          Nullable(String),
  output         Nullable(String),
  error_message  Nullable(String),
  created_at     DateTime64(3, 'UTC'),
  updated_at     DateTime64(3, 'UTC'),
  started_at     Nullable(DateTime64(3, 'UTC')),
  completed_at   Nullable(DateTime64(3, 'UTC')),
  seq            UInt64,
  received_at    DateTime64(3, 'UTC'),
  epoch          LowCardinality(String),
  bytes          UInt64 materialized length(name) + ifNull(length(input), 0) + ifNull(length(output), 0)
                   + ifNull(length(error_message), 0),
  search_text    String alias lowerUTF8(replaceRegexpAll(concat(name, ' ', ifNull(input, ''), ' ', ifNull(output, ''), ' ', ifNull(error_message, '')), '\\\\.|[\n\r\t“”‘’„«»‹›—–…•·、。「」（）]', ' ')),
  index said search_text type text(tokenizer = 'splitByNonAlpha'),
  index runs_seen run_id type bloom_filter(0.01) granularity 1
)
engine = MergeTree
partition by toDate(received_at)
order by (workspace_id, seq)
settings
  exclude_materialize_skip_indexes_on_merge = 'said',
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

-- Scores as they were accepted. A later one with the same id replaces it in `scores`. `content_hash` tells a repeat from a
-- change; 0 for a score whose id the service minted. Columns that may be null are absent from blocks in which all are.
create table if not exists {database}.score_changes (
  workspace_id UUID,
  agent_id     UUID,
  run_id       UUID,
  score_id     String,
  name         LowCardinality(String),
  task_id      Nullable(UUID),
  event_id     Nullable(String),
  session_id   Nullable(String),
  value        Nullable(Float64),
  data_type    Enum8('number' = 1, 'boolean' = 2, 'label' = 3, 'text' = 4),
  label        Nullable(String),
  text         Nullable(String),
  comment      Nullable(String),
  source       Enum8('api' = 1, 'person' = 2, 'judge' = 3, 'import' = 4),
  metadata     String,
  created_at   DateTime64(3, 'UTC'),
  content_hash UInt64,
  seq          UInt64,
  received_at  DateTime64(3, 'UTC'),
  epoch        LowCardinality(String),
  bytes        UInt64 materialized length(name) + length(metadata) + ifNull(length(label), 0) + ifNull(length(text), 0)
                 + ifNull(length(comment), 0),
  index runs_seen run_id type bloom_filter(0.01) granularity 1
)
engine = MergeTree
partition by toDate(received_at)
order by (workspace_id, seq)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

-- Attempts to deliver activity to webhooks. `activity_seq` is the position of the activity, which SQL shows as `seq`.
create table if not exists {database}.deliveries (
  workspace_id UUID,
  webhook_id   UUID,
  delivery_id  String,
  type         LowCardinality(String),
  run_id       Nullable(UUID),
  activity_seq UInt64,
  attempt      Int64,
  status       LowCardinality(String),
  http_status  Nullable(Int64),
  duration_ms  Int64,
  response     Nullable(String),
  at           DateTime64(3, 'UTC'),
  seq          UInt64,
  received_at  DateTime64(3, 'UTC'),
  epoch        LowCardinality(String)
)
engine = MergeTree
partition by toDate(received_at)
order by (workspace_id, webhook_id, seq)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

-- The latest states ---------------------------------------------------------------------------------------------------------

-- One partition: the rows of a run that continues past midnight must be able to merge.
create table if not exists {database}.runs (
  workspace_id     UUID,
  agent_id         UUID,
  run_id           UUID,
  agent_name       String,
  agent_version    Int64,
  runtime_type     LowCardinality(String),
  status           LowCardinality(String),
  trigger_type     LowCardinality(String),
  external_run_id  Nullable(String),
  parent_run_id    Nullable(UUID),
  session_id       Nullable(String),
  external_user_id Nullable(String),
  tags             Array(String),
  metadata         String,
  input            String,
  output           Nullable(String),
  error_message    Nullable(String),
  error_detail     Nullable(String),
  created_at       DateTime64(3, 'UTC'),
  started_at       Nullable(DateTime64(3, 'UTC')),
  completed_at     Nullable(DateTime64(3, 'UTC')),
  duration_ms      Nullable(Int64),
  waiting_ms       Int64,
  waiting_since    Nullable(DateTime64(3, 'UTC')),
  input_tokens     Int64,
  output_tokens    Int64,
  cache_read_tokens  Int64,
  cache_write_tokens Int64,
  reasoning_tokens Int64,
  cost_usd         Float64,
  event_count      Int64,
  last_event_at    Nullable(DateTime64(3, 'UTC')),
  seq              UInt64,
  received_at      DateTime64(3, 'UTC'),
  epoch            LowCardinality(String),
  search_text      String alias lowerUTF8(replaceRegexpAll(concat(agent_name, ' ', ifNull(external_run_id, ''), ' ', ifNull(session_id, ''), ' ', ifNull(external_user_id, ''), ' ',
                       arrayStringConcat(tags, ' '), ' ', ifNull(error_message, ''), ' ', ifNull(error_detail, ''), ' ', metadata, ' ',
                       input, ' ', ifNull(output, '')), '\\\\.|[\n\r\t“”‘’„«»‹›—–…•·、。「」（）]', ' ')),
  index said search_text type text(tokenizer = 'splitByNonAlpha')
)
engine = ReplacingMergeTree(seq)
order by (workspace_id, run_id)
settings
  min_parts_to_merge_at_once = 16,
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

create table if not exists {database}.tasks (
  workspace_id   UUID,
  agent_id       UUID,
  run_id         UUID,
  task_id        UUID,
  parent_task_id Nullable(UUID),
  name           String,
  status         LowCardinality(String),
  input          Nullable(String),
  output         Nullable(String),
  error_message  Nullable(String),
  created_at     DateTime64(3, 'UTC'),
  updated_at     DateTime64(3, 'UTC'),
  started_at     Nullable(DateTime64(3, 'UTC')),
  completed_at   Nullable(DateTime64(3, 'UTC')),
  seq            UInt64,
  received_at    DateTime64(3, 'UTC'),
  epoch          LowCardinality(String)
)
engine = ReplacingMergeTree(seq)
order by (workspace_id, run_id, task_id)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

-- The changes of tasks become the latest states, so each is sent once. The sink repeats a load of `task_changes` whose outcome
-- it does not know; the setting `deduplicate_blocks_in_dependent_materialized_views` then completes a load that ended here.
create materialized view if not exists {database}.task_changes_to_tasks to {database}.tasks as
select workspace_id, agent_id, run_id, task_id, parent_task_id, name, status, input, output, error_message, created_at,
  updated_at, started_at, completed_at, seq, received_at, epoch
from {database}.task_changes;

-- Partitioned by day, because retention deletes scores. FINAL finds the latest state in all partitions.
create table if not exists {database}.scores (
  workspace_id UUID,
  agent_id     UUID,
  run_id       UUID,
  score_id     String,
  name         LowCardinality(String),
  task_id      Nullable(UUID),
  event_id     Nullable(String),
  session_id   Nullable(String),
  value        Nullable(Float64),
  data_type    Enum8('number' = 1, 'boolean' = 2, 'label' = 3, 'text' = 4),
  label        Nullable(String),
  text         Nullable(String),
  comment      Nullable(String),
  source       Enum8('api' = 1, 'person' = 2, 'judge' = 3, 'import' = 4),
  metadata     String,
  created_at   DateTime64(3, 'UTC'),
  content_hash UInt64,
  seq          UInt64,
  received_at  DateTime64(3, 'UTC'),
  epoch        LowCardinality(String)
)
engine = ReplacingMergeTree(seq)
partition by toDate(received_at)
order by (workspace_id, run_id, score_id)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

create materialized view if not exists {database}.score_changes_to_scores to {database}.scores as
select workspace_id, agent_id, run_id, score_id, name, task_id, event_id, session_id, value, data_type, label, text, comment,
  source, metadata, created_at, content_hash, seq, received_at, epoch
from {database}.score_changes;

-- Approvals and questions, made of the events that report them: the newest event of each has all that is known, and the others
-- show its earlier states. They stay when retention deletes the events. An event that cannot be read must not stop the loading of others, so nothing here can throw:
-- leading members are found in the text, because one with a lone surrogate in an argument does not parse.
create table if not exists {database}.pauses (
  workspace_id      UUID,
  agent_id          UUID,
  run_id            UUID,
  pause_id          UUID,
  kind              LowCardinality(String),
  status            LowCardinality(String),
  tool              Nullable(String),
  input             Nullable(String),
  edited_input      Nullable(String),
  question          Nullable(String),
  options           Array(String),
  answer            Nullable(String),
  comment           Nullable(String),
  requested_at      DateTime64(3, 'UTC'),
  expires_at        Nullable(DateTime64(3, 'UTC')),
  decided_at        Nullable(DateTime64(3, 'UTC')),
  decided_by        Nullable(UUID),
  decided_by_person Nullable(String),
  seq               UInt64,
  received_at       DateTime64(3, 'UTC'),
  epoch             LowCardinality(String)
)
engine = ReplacingMergeTree(seq)
order by (workspace_id, run_id, pause_id, seq)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

create materialized view if not exists {database}.events_to_pauses to {database}.pauses as
with
  if(kind = 'approval', simpleJSONExtractString(payload, 'approval_id'), simpleJSONExtractString(payload, 'request_id')) as id,
  -- It stands before the arguments, which may have members of any name.
  if(type in ('approval.decided', 'input.answered'), simpleJSONExtractRaw(payload, 'decided_by'), '') as decider,
  simpleJSONExtractString(decider, 'person_id') as person_id
select workspace_id, agent_id, run_id, toUUIDOrZero(id) as pause_id, splitByChar('.', toString(type))[1] as kind,
  multiIf(
    type in ('approval.requested', 'input.requested'), 'pending',
    type in ('approval.expired', 'input.expired'), 'expired',
    type in ('approval.cancelled', 'input.cancelled'), 'cancelled',
    type = 'input.answered', 'answered',
    simpleJSONExtractString(payload, 'decision')
  ) as status,
  nullIf(simpleJSONExtractString(payload, 'tool'), '') as tool,
  nullIf(JSONExtractRaw(payload, 'input'), '') as input,
  nullIf(nullIf(JSONExtractRaw(payload, 'edited_input'), ''), 'null') as edited_input,
  JSONExtract(payload, 'question', 'Nullable(String)') as question,
  JSONExtract(payload, 'options', 'Array(String)') as options,
  JSONExtract(payload, 'answer', 'Nullable(String)') as answer,
  JSONExtract(payload, 'comment', 'Nullable(String)') as comment,
  if(
    status = 'pending', occurred_at,
    ifNull(parseDateTime64BestEffortOrNull(simpleJSONExtractString(payload, 'requested_at'), 3, 'UTC'), occurred_at)
  ) as requested_at,
  parseDateTime64BestEffortOrNull(simpleJSONExtractString(payload, 'expires_at'), 3, 'UTC') as expires_at,
  if(status = 'pending', null, occurred_at) as decided_at,
  toUUIDOrNull(if(person_id = '', simpleJSONExtractString(decider, 'key_id'), person_id)) as decided_by,
  coalesce(JSONExtract(decider, 'email', 'Nullable(String)'), JSONExtract(decider, 'name', 'Nullable(String)'))
    as decided_by_person,
  seq, received_at, epoch
from {database}.events
where type in ('approval.requested', 'approval.decided', 'approval.expired', 'approval.cancelled',
  'input.requested', 'input.answered', 'input.expired', 'input.cancelled');

-- The transitions of alerts, made of the workspace events that report them, which no caller can report. They stay when
-- retention deletes the events. Nothing here can throw, as above. Members are found in the text, which src/sql/alerts/events.ts writes
-- in this order, because one with an integer beyond 64 bits does not parse. A series may have members of any name.
create table if not exists {database}.alert_states (
  workspace_id   UUID,
  alert_id       UUID,
  series         String,
  state          LowCardinality(String),
  previous_state LowCardinality(String),
  value          Nullable(Float64),
  at             DateTime64(3, 'UTC'),
  seq            UInt64,
  received_at    DateTime64(3, 'UTC'),
  epoch          LowCardinality(String)
)
engine = ReplacingMergeTree
order by (workspace_id, alert_id, seq)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

create materialized view if not exists {database}.events_to_alert_states to {database}.alert_states as
with
  concat('"series":', series) as member,
  substring(payload, position(payload, member) + length(member)) as rest
select workspace_id,
  toUUIDOrZero(simpleJSONExtractString(payload, 'alert_id')) as alert_id,
  simpleJSONExtractRaw(payload, 'series') as series,
  simpleJSONExtractString(rest, 'state') as state,
  simpleJSONExtractString(rest, 'previous_state') as previous_state,
  toFloat64OrNull(simpleJSONExtractRaw(rest, 'value')) as value,
  ifNull(parseDateTime64BestEffortOrNull(simpleJSONExtractString(rest, 'at'), 3, 'UTC'), occurred_at) as at,
  seq, received_at, epoch
from {database}.events
where agent_id = toUUID('00000000-0000-0000-0000-000000000000') and run_id = toUUID('00000000-0000-0000-0000-000000000000')
  and type in ('alert.fired', 'alert.resolved', 'alert.changed');

-- The versions of agents, copied from Postgres when a query names them (see src/sql/analytics/agent-versions.ts). A version does
-- not change; where Postgres was set back, the later one of a number wins.
create table if not exists {database}.agent_versions (
  workspace_id         UUID,
  agent_id             UUID,
  version              Int64,
  name                 String,
  description          Nullable(String),
  runtime_type         LowCardinality(String),
  status               LowCardinality(String),
  model                Nullable(String),
  prompt               Nullable(String),
  tools                Nullable(String),
  output_schema        Nullable(String),
  input_schema         Nullable(String),
  expose               Array(String),
  allow_input_requests Nullable(Bool),
  temperature          Nullable(Float64),
  max_output_tokens    Nullable(Int64),
  max_steps            Nullable(Int64),
  timeout_seconds      Nullable(Int64),
  budget_usd           Nullable(Float64),
  stale_after_seconds  Nullable(Int64),
  metadata             String,
  created_by           Nullable(UUID),
  created_by_person    Nullable(String),
  changes              Array(String),
  restored_from        Nullable(Int64),
  agent_created_at     DateTime64(3, 'UTC'),
  version_created_at   DateTime64(3, 'UTC')
)
engine = ReplacingMergeTree(version_created_at)
order by (workspace_id, agent_id, version)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

-- The state of the stores ---------------------------------------------------------------------------------------------------

-- How far each journal had been loaded at its last beats (see src/service/store-marks). Several beats are kept, so that a copy
-- whose tables differ by some seconds is recognised as well.
create table if not exists {database}.store_marks (
  journal_id UUID,
  beat       UInt64,
  slot       UInt8 materialized beat % 64,
  epoch      LowCardinality(String),
  loaded_seq UInt64,
  noted_at   DateTime64(3, 'UTC')
)
engine = ReplacingMergeTree(beat)
order by (journal_id, slot)
settings fsync_after_insert = 1, fsync_part_directory = 1;

-- Positions whose rows are lost; what SQL shows as `gaps`.
create table if not exists {database}.gaps (
  epoch       LowCardinality(String),
  after_seq   UInt64,
  through_seq UInt64,
  reason      String,
  noticed_at  DateTime64(3, 'UTC')
)
engine = ReplacingMergeTree
order by (epoch, after_seq, through_seq)
settings fsync_after_insert = 1, fsync_part_directory = 1;

-- Stays empty: the current database of tenant SQL, so that a name other than its own tables resolves to nothing.
create database if not exists {database}_scope;
