-- A score of a run that is being or has been deleted; null: the whole run.
alter table run_erasures add column score_id text;
alter table run_erasures drop constraint run_erasures_run_id_workspace_id_key;
create unique index run_erasures_of_run on run_erasures (run_id, workspace_id, score_id) nulls not distinct;
