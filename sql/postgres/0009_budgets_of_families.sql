-- A budget covers its run and the child runs that execute its calls.

alter table hosted_runs
  -- Runs whose budgets cover this one, itself included; null: none.
  add column budgeted_by uuid[],
  -- Cost of its model calls; a model without a known price counts as the most expensive one.
  add column spent_usd double precision not null default 0,
  -- Maximum cost of the current model call. Counts while an executor runs it.
  add column reserved_usd double precision not null default 0;
create index hosted_runs_budgeted on hosted_runs (workspace_id, root_run_id) where budgeted_by is not null;

update hosted_runs h set spent_usd = r.cost_usd
from runs r
where r.workspace_id = h.workspace_id and r.run_id = h.run_id and h.phase <> 'ended' and r.cost_usd > 0;
