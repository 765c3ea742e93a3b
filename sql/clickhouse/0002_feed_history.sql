-- What feeds replay once the journal's files have been deleted. `runs` and `tasks` keep only the latest states, so all
-- changes are kept in separate tables, in journal order. Settings as in 0001.

alter table {database}.runs
  add column if not exists event_count   Int64 after cost_usd,
  add column if not exists last_event_at Nullable(DateTime64(3, 'UTC')) after event_count;

-- Without input and output, which feeds do not contain. `bytes` is the size of a row's text, so that the size of a page
-- is known without reading it.
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

-- Copies the existing states. Repeating this adds no duplicates.
insert into {database}.run_changes
select
  workspace_id, agent_id, run_id, agent_name, agent_version, runtime_type, status, trigger_type, external_run_id,
  parent_run_id, session_id, external_user_id, tags, metadata, error_message, error_detail, created_at, started_at,
  completed_at, duration_ms, input_tokens, output_tokens, cost_usd, event_count, last_event_at, seq, received_at, epoch
from {database}.runs
where (epoch, seq) not in (select epoch, seq from {database}.run_changes)
settings max_partitions_per_insert_block = 0;

insert into {database}.task_changes
select
  workspace_id, agent_id, run_id, task_id, parent_task_id, name, status, input, output, error_message, created_at,
  updated_at, seq, received_at, epoch
from {database}.tasks
where (epoch, seq) not in (select epoch, seq from {database}.task_changes)
settings max_partitions_per_insert_block = 0;

-- Finds a range of positions in a table that is ordered by run. Existing parts are indexed in the background.
alter table {database}.events add index if not exists seq_range seq type minmax granularity 1;
alter table {database}.events materialize index seq_range;
