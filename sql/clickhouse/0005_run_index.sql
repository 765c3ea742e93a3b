-- With a false positive rate of 1%, the index of 0003 matched dozens of irrelevant granules in a large table; a lower rate
-- costs little. Existing parts are indexed in the background.
alter table {database}.events drop index if exists runs_seen;
alter table {database}.events add index if not exists runs_seen_exactly run_id type bloom_filter(0.0001) granularity 1;
alter table {database}.events materialize index runs_seen_exactly;
