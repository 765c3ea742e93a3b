-- What the sink loads from the journal into ClickHouse. Rows never change: a newer state of a run or task is another row,
-- and the one with the highest seq wins. Times are UTC milliseconds; free-form JSON is kept as the text that was sent.
--
-- Events and changes are partitioned by the day of acceptance, so that late events do not multiply the parts. Settings:
--   non_replicated_deduplication_window  remembers the tokens of that many loads, so that a repeat changes nothing;
--   fsync_*, min_*_to_fsync_after_merge  a loaded row survives a power cut: the journal drops what has been loaded;
--   min_parts_to_merge_at_once           by default, small parts are merged so early that each row of a run is rewritten 14
--                                        to 24 times instead of 4, which costs twice as much as inserting it (measured).

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
  epoch        LowCardinality(String),
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
  session_id       Nullable(UUID),
  external_user_id Nullable(String),
  tags             Array(String),
  metadata         String,
  error_message    Nullable(String),
  error_detail     Nullable(String),
  created_at       DateTime64(3, 'UTC'),
  started_at       Nullable(DateTime64(3, 'UTC')),
  completed_at     Nullable(DateTime64(3, 'UTC')),
  duration_ms      Nullable(Int64),
  input_tokens     Int64,
  output_tokens    Int64,
  cost_usd         Float64,
  event_count      Int64,
  last_event_at    Nullable(DateTime64(3, 'UTC')),
  -- What a paused run waits for.
  pending          Nullable(String),
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
  session_id       Nullable(UUID),
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
  input_tokens     Int64,
  output_tokens    Int64,
  cost_usd         Float64,
  event_count      Int64,
  last_event_at    Nullable(DateTime64(3, 'UTC')),
  seq              UInt64,
  received_at      DateTime64(3, 'UTC'),
  epoch            LowCardinality(String)
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

-- The state of the stores ---------------------------------------------------------------------------------------------------

-- How far each journal had been loaded at its last beats (see src/store-marks). Several beats are kept, so that a copy
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
