-- The events of a run are adjacent within those of its agent, so a query by run alone would search each agent's range of
-- each day. With this index it reads only matching granules. Existing parts are indexed in the background.
alter table {database}.events add index if not exists runs_seen run_id type bloom_filter(0.01) granularity 1;
alter table {database}.events materialize index runs_seen;
