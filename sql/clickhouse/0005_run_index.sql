-- At one in a hundred, the index of 0003 named dozens of granules in a large table that hold nothing of the run; it costs little
-- to be wrong less often. Older parts get it in the background.
alter table {database}.events drop index if exists runs_seen;
alter table {database}.events add index if not exists runs_seen_exactly run_id type bloom_filter(0.0001) granularity 1;
alter table {database}.events materialize index runs_seen_exactly;
