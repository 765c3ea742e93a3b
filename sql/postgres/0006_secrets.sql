-- What the headers of tools refer to as {{secret:NAME}}. Sealed with a key that is not in the database; the workspace and
-- the name are sealed in, so that a row that is moved or renamed cannot be opened.
create table secrets (
  workspace_id uuid not null references workspaces,
  name         text not null,
  sealed       bytea not null,
  -- Tells which key, and nothing about it.
  key_id       text not null,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  primary key (workspace_id, name)
);
