-- Feed tokens: what a browser puts into the address of a live feed, where a key must not stand. Each dies with the key
-- that it was minted with. Found by the SHA-256 of its text, which is nowhere; swept once it has expired.
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
