-- Members of the model's message that its provider wants back within the run, such as reasoning; those of its calls are in
-- `tool_calls`.
alter table run_steps add column extra json;
