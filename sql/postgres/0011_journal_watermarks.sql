-- The progress of each journal at its last beat. Compared with the marks in the journal's directory and in ClickHouse, it
-- shows whether one of the three stores has gone back to an earlier state (see src/watermarks).
create table journal_watermarks (
  journal_id     uuid primary key,
  -- Incremented with every update.
  beat           bigint not null,
  -- The newest beat that ClickHouse is known to have stored.
  columnar_beat  bigint not null,
  epoch          text not null,
  end_seq        bigint not null,
  loaded_seq     bigint not null,
  seen_at        timestamptz(3) not null
);

-- Positions whose rows are lost. ClickHouse has the same in `gaps`.
create table journal_gaps (
  epoch       text not null,
  after_seq   bigint not null,
  through_seq bigint not null,
  reason      text not null,
  noticed_at  timestamptz(3) not null,
  primary key (epoch, after_seq, through_seq)
);
