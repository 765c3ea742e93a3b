-- The person who made a key, in the key's workspace; null for keys that a key, the operator or the first start made. A key that
-- is made with a key has the same maker.
alter table api_keys add column created_by uuid references people;
create index api_keys_of_person on api_keys (created_by) where created_by is not null;

-- A change of the scope 'maker' concerns the sign-ins of a person and the keys that they made.
alter table credential_changes
  drop constraint credential_changes_scope_check,
  add constraint credential_changes_scope_check check (scope in ('key', 'agent', 'workspace', 'person', 'maker'));
