-- How far retention has come, in time: a clock that jumps ahead must not take everything with it.

create table retention_watermark (
  only_row boolean primary key default true check (only_row),
  -- Unix milliseconds. What retention takes for the present.
  watermark_ms bigint not null,
  -- What the clock said when the watermark was last moved.
  observed_ms bigint not null
);
