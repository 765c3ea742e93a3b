-- How far each journal had been loaded at its last beats (see src/watermarks). Several beats are kept, so that a copy
-- whose tables differ by some seconds is recognised as well.
create table if not exists {database}.journal_watermarks (
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
