-- The events of one run lie together within those of its agent; a query that names the run alone has to find them in each
-- agent's range of each day. With this it reads the granules that hold some. Older parts get it in the background.
alter table {database}.events add index if not exists runs_seen run_id type bloom_filter(0.01) granularity 1;
alter table {database}.events materialize index runs_seen;
