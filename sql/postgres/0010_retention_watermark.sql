-- The retention clock: a system clock that jumps ahead must not delete everything.

create table retention_watermark (
  only_row boolean primary key default true check (only_row),
  -- Unix milliseconds. The current time for retention.
  watermark_ms bigint not null,
  -- The system clock when the row was last updated.
  observed_ms bigint not null
);
