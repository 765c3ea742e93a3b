-- Named queries of a workspace (docs/specification.md#saved-queries). `params` are the default values of the query's
-- placeholders.
create table saved_queries (
  query_id     uuid primary key,
  workspace_id uuid not null references workspaces,
  name         text not null,
  description  text,
  query        text not null,
  params       json not null,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  constraint saved_queries_name unique (workspace_id, name)
);
create index saved_queries_list on saved_queries (workspace_id, query_id desc);
