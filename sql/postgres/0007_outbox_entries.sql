-- The journal remembers which outbox rows it has. `outbox_id` gives the order, but a database that is set back gives the same
-- numbers again; `entry_id` names a row for good. Rows that are there get the id that the frames of before stand for.
alter table outbox add column entry_id uuid;
update outbox set entry_id = lpad(to_hex(outbox_id), 32, '0')::uuid;
alter table outbox alter column entry_id set default gen_random_uuid(), alter column entry_id set not null;
