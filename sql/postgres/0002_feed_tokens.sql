-- Feed tokens, which browsers put into the URL of a live feed instead of a key. A token is valid only as long as the key
-- that minted it. Only the SHA-256 of a token is stored; expired tokens are deleted.
create table feed_tokens (
  hash         bytea primary key,
  key_id       uuid not null references api_keys,
  workspace_id uuid not null,
  -- Limits the token to one agent: always set when the key is that agent's.
  agent_id     uuid references agents,
  -- Limits it to one run.
  run_id       uuid,
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3) not null
);
create index feed_tokens_expiry on feed_tokens (expires_at);
