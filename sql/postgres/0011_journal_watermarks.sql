-- How far each journal had come when its process last looked: with what the journal's directory and ClickHouse keep of the
-- same, it shows whether one of the three has gone back to an earlier state (see src/watermarks).
create table journal_watermarks (
  journal_id     uuid primary key,
  -- Rises by one whenever this row is written.
  beat           bigint not null,
  -- The newest beat that ClickHouse was known to have.
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
