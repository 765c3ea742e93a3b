-- The score that a delivery is about, so that it is deleted with it.
alter table webhook_retries add column score_id text;
-- Rises when rows of the endpoint are deleted with a run or a score: the process that delivers then reads them again.
alter table webhooks add column retries_erased bigint not null default 0;
