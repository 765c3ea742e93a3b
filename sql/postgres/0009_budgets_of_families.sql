-- A budget covers the run that has it and the runs that carry out its calls.

alter table hosted_runs
  -- Runs whose budgets cover this one, itself included; null: none.
  add column budgeted_by uuid[],
  -- What its answers have come to, a model of unknown price taken for the dearest.
  add column spent_usd double precision not null default 0,
  -- What its model call under way may come to. Counts while the run is driven.
  add column reserved_usd double precision not null default 0;
create index hosted_runs_budgeted on hosted_runs (workspace_id, root_run_id) where budgeted_by is not null;

update hosted_runs h set spent_usd = r.cost_usd
from runs r
where r.workspace_id = h.workspace_id and r.run_id = h.run_id and h.phase <> 'over' and r.cost_usd > 0;
