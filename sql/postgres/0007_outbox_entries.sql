-- The journal remembers which outbox rows it has. `outbox_id` defines the order, but a restored database assigns the same
-- numbers again; `entry_id` is unique. Existing rows get the id that old frames convert to.
alter table outbox add column entry_id uuid;
update outbox set entry_id = lpad(to_hex(outbox_id), 32, '0')::uuid;
alter table outbox alter column entry_id set default gen_random_uuid(), alter column entry_id set not null;
