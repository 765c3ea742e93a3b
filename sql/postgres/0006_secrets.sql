-- Secrets that tool headers refer to as {{secret:NAME}}. Encrypted with a key that is not in the database; the workspace
-- and the name are authenticated, so that a moved or renamed row cannot be decrypted.
create table secrets (
  workspace_id uuid not null references workspaces,
  name         text not null,
  sealed       bytea not null,
  -- Identifies the encryption key without revealing anything about it.
  key_id       text not null,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  primary key (workspace_id, name)
);
