-- What the sink loads from the journal. Rows never change: a newer state of a run or task is another row, and the one
-- with the highest seq wins. Times are UTC milliseconds; free-form JSON is kept as the text that was sent.
--
-- Partitioned by the day of acceptance, so that late events do not multiply the parts. Settings:
--   non_replicated_deduplication_window  remembers the tokens of that many loads, so that a repeat changes nothing;
--   fsync_*, min_*_to_fsync_after_merge  a loaded row survives a power cut: the journal drops what has been loaded.

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
  epoch        LowCardinality(String)
)
engine = MergeTree
partition by toDate(received_at)
order by (workspace_id, agent_id, run_id, seq)
settings
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_merge = 1;

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
  seq              UInt64,
  received_at      DateTime64(3, 'UTC'),
  epoch            LowCardinality(String)
)
engine = ReplacingMergeTree(seq)
order by (workspace_id, run_id)
settings
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

-- Stays empty: the current database of tenant SQL, so that a name other than its own tables resolves to nothing.
create database if not exists {database}_scope;
