// Generated from the OpenAPI document by `bun run client-types`.

export interface paths {
    "/api/ingest/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report events
         * @description A 200 means that every accepted event is on stable storage. All events are stored or none, unless `partial=true`. A run that has ended still accepts events.
         */
        post: operations["appendEvents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/ingest/v1/run/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a run
         * @description Only for external agents. With a `run_id` chosen by the caller, the request can be retried safely.
         */
        post: operations["startRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/ingest/v1/run/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Complete a run
         * @description A repeat returns `already: true`. A run that ended with another status is a CONFLICT.
         */
        post: operations["completeRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/ingest/v1/run/fail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Fail a run
         * @description A repeat returns `already: true`. A run that ended with another status is a CONFLICT.
         */
        post: operations["failRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List runs
         * @description Conditions are combined with AND. `from` (inclusive) and `to` (exclusive) bound `created_at`. `q` searches ids (also their beginnings), tags, the name of the agent, errors, inputs, outputs, metadata, tasks, and payloads of events, in either case: each word as a whole; in quotation marks, or with marks inside, as it is written. All of it has to be in the run itself, in one task, or in one event. What was accepted a moment ago is found within a second or so. Runs have one line of their input and output; `include=input,output` adds all of it.
         */
        get: operations["listRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a run
         * @description The current state of the run, with its input and output.
         */
        get: operations["getRun"];
        put?: never;
        post?: never;
        /**
         * Delete a run
         * @description Only a run that has ended: CONFLICT with `run_live` for another one, and for a child run of a hosted run that has not ended. It can no longer be read at once; what was reported for it leaves feeds and SQL within about a minute. A repeat returns the same erasure.
         */
        delete: operations["deleteRun"];
        options?: never;
        head?: never;
        /**
         * Edit a run
         * @description Replaces the tags or the metadata of a run, also of one that has ended.
         */
        patch: operations["editRun"];
        trace?: never;
    };
    "/api/v1/runs/{run_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the events of a run
         * @description Includes every event acknowledged before the call. Unlike other lists, oldest first: `next_cursor` is the `after_seq` of the next page. `level` is a minimum, `type` takes a trailing `*`.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/conversation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the conversation of a run
         * @description The messages of its model calls and its tool calls, whatever format they were reported in, oldest first and each once: what a call of a model is sent again is left out. A page may have fewer messages than asked for, or none, while `next_cursor` says that more may follow. Long texts and values are shortened.
         */
        get: operations["readConversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/children": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the child runs of a run
         * @description The runs that name it as their parent, newest first.
         */
        get: operations["listChildren"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a run
         * @description A repeat returns `already: true`. A run that ended with another status is a CONFLICT.
         */
        post: operations["cancelRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/views/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Save a view
         * @description Creates it, or replaces what it shows. With `If-Match` only the latter.
         */
        put: operations["setView"];
        post?: never;
        /**
         * Delete a view
         * @description Deletes it for everyone.
         */
        delete: operations["deleteView"];
        options?: never;
        head?: never;
        /**
         * Rename a view
         * @description A name that is already taken is a CONFLICT.
         */
        patch: operations["renameView"];
        trace?: never;
    };
    "/api/v1/views": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List views
         * @description Newest first.
         */
        get: operations["listViews"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/ingest/v1/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create or update a task
         * @description Fields omitted from a later call keep their value. A report that arrives out of order changes nothing.
         */
        post: operations["reportTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tasks of a run
         * @description Newest first. Those of a run that OpenTelemetry reports are read from ClickHouse, like events.
         */
        get: operations["listTasks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/ingest/v1/scores": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Score runs
         * @description A 200 means that every accepted score is on stable storage. All scores are stored or none, unless `partial=true`. The latest score with an id replaces the earlier ones.
         */
        post: operations["addScores"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/scores": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the scores of a run
         * @description The latest state of each, the one stored last first. Read from ClickHouse, like events.
         */
        get: operations["listScores"];
        put?: never;
        /**
         * Score a run
         * @description One score. A feed token that was created with `scores` may write scores of its names for its run; it sends only `name`, the value and what is scored, because the id derives from its subject.
         */
        post: operations["addRunScore"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the agents of the workspace
         * @description Newest first. Archived agents are listed with `status=archived` only. Conditions are combined with AND.
         */
        get: operations["listAgents"];
        put?: never;
        /**
         * Create an agent
         * @description A hosted agent needs `model` and `prompt`; the service runs it. An external agent runs elsewhere and reports.
         */
        post: operations["createAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an agent
         * @description Its settings and status, also when it is archived.
         */
        get: operations["getAgent"];
        put?: never;
        post?: never;
        /**
         * Archive an agent
         * @description Its keys stop working and it can no longer run or report. Its runs stay readable.
         */
        delete: operations["archiveAgent"];
        options?: never;
        head?: never;
        /**
         * Edit an agent
         * @description Changes the fields that are given; null clears a nullable field. Runs that have started keep the version that they started with.
         */
        patch: operations["editAgent"];
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore an archived agent
         * @description It has the status that it had before; its keys stay revoked. CONFLICT if another agent has its name by now. Changes nothing if it is not archived.
         */
        post: operations["restoreAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of an agent
         * @description Newest first, without their configurations. The newest 200 are kept, whether or not runs of them exist.
         */
        get: operations["listAgentVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a version of an agent
         * @description Its whole configuration. `agent_version` of a run is the version that it ran.
         */
        get: operations["getAgentVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/versions/{version}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a version of an agent
         * @description Makes its configuration a new version and returns the agent. The status stays. Changes nothing if the agent already has this configuration.
         */
        post: operations["restoreAgentVersion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List sessions
         * @description Sessions that the service itself runs, and those that reported runs name. A session is listed if one of its runs matches all conditions; its place is that of the newest run that does, newest first. A page may have fewer sessions than asked for, or none, while `next_cursor` says that more may follow. An agent key sees the runs of its own agent.
         */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a session
         * @description Its totals. `GET /api/v1/runs?session_id=` lists its runs.
         */
        get: operations["getSession"];
        put?: never;
        post?: never;
        /**
         * Delete a session
         * @description One that the service itself runs. Deletes its messages too. The runs of the session stay.
         */
        delete: operations["deleteSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{external_user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a user
         * @description Totals of the runs that name this user. `GET /api/v1/sessions?external_user_id=` and `GET /api/v1/runs?external_user_id=` list its sessions and runs. An agent key sees those of its own agent.
         */
        get: operations["getUser"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/otlp/v1/traces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Export traces over OTLP
         * @description OTLP/HTTP in protobuf or JSON, optionally compressed with gzip or zstd. A trace is a run; a span is a task and an event. A repeated export changes nothing. A 200 says that everything that was not rejected is on stable storage; X-First-Seq and X-Last-Seq are the positions of the events. The key is a bearer token, X-API-Key or the password of Basic auth.
         */
        post: operations["exportTraces"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/otlp/v1/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Export logs over OTLP
         * @description OTLP/HTTP in protobuf or JSON, optionally compressed with gzip or zstd. A log record is an event of the run of its trace. A repeated export changes nothing. A 200 says that everything that was not rejected is on stable storage; X-First-Seq and X-Last-Seq are the positions of the events. The key is a bearer token, X-API-Key or the password of Basic auth.
         */
        post: operations["exportLogs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/otlp/v1/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Export metrics over OTLP
         * @description OTLP/HTTP in protobuf or JSON, optionally compressed with gzip or zstd. Not stored: all data points are rejected. A repeated export changes nothing. A 200 says that everything that was not rejected is on stable storage; X-First-Seq and X-Last-Seq are the positions of the events. The key is a bearer token, X-API-Key or the password of Basic auth.
         */
        post: operations["exportMetrics"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openai/v1/traces/ingest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ingest traces of the OpenAI Agents SDK
         * @description What the exporter of the SDK sends: traces and spans that have ended. A trace is a run, a span a task and an event. A repeated call changes nothing. If some items are invalid, the others are stored, and the error names the first one. X-First-Seq and X-Last-Seq are the positions of the events.
         */
        post: operations["ingestOpenAiTraces"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/public/ingestion": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report a batch of a Langfuse SDK
         * @description Traces, observations and scores as the Langfuse SDKs send them, up to 4.5 MB. The key is the secret key of the SDK: the password of Basic auth. A repeated batch changes nothing. Every event without an error is on stable storage.
         */
        post: operations["ingestLangfuseBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List keys
         * @description Keys of the workspace and of its agents, newest first, without their secrets.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create a workspace key
         * @description The key is shown only in this answer.
         */
        post: operations["createWorkspaceKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create an agent key
         * @description The key is shown only in this answer.
         */
        post: operations["createAgentKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys/{key_id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke a key
         * @description Once this call has answered, no process accepts the key or its feed tokens. Its open feeds are closed.
         */
        post: operations["revokeKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys/{key_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate a key
         * @description Creates a new key that replaces this one, which becomes invalid after the grace period.
         */
        post: operations["rotateKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/people": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List people
         * @description Everyone who has signed in to the workspace by OpenID Connect, newest first.
         */
        get: operations["listPeople"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/people/{person_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a person
         * @description With the browsers in which the person is signed in. For admins and workspace keys.
         */
        get: operations["getPerson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Suspend or reactivate a person
         * @description Once a suspension has answered, no process accepts a sign-in of the person or a key that they made (unless `keep_keys` is true), their feeds are closed, and they cannot sign in again. For admins and workspace keys.
         */
        patch: operations["editPerson"];
        trace?: never;
    };
    "/api/v1/sign-ins/{sign_in_id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign a browser out
         * @description Once this call has answered, no process accepts the sign-in. For admins and workspace keys.
         */
        post: operations["revokeSignIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sign-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read who is signed in
         * @description How people sign in to the page, and who is signed in by the cookie of this request.
         */
        get: operations["getSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sign-out": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign out
         * @description Once this call has answered, no process accepts the sign-in, and its feeds are closed.
         */
        post: operations["signOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sign-in/workspace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enter another workspace
         * @description The cookie is replaced; the earlier one is no longer accepted.
         */
        post: operations["changeWorkspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set a secret
         * @description Headers of tools refer to it as `{{secret:NAME}}`. Its value is stored encrypted and never shown again. With `If-Match` it is only replaced, not created.
         */
        put: operations["setSecret"];
        post?: never;
        /**
         * Delete a secret
         * @description Calls of tools that refer to it fail from then on.
         */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List secrets
         * @description Names and dates only; no call returns a value.
         */
        get: operations["listSecrets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List workspaces
         * @description All workspaces, newest first, without their keys.
         */
        get: operations["listWorkspaces"];
        put?: never;
        /**
         * Create a workspace
         * @description The response has its first workspace key, which is shown only there.
         */
        post: operations["createWorkspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{workspace_id}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a workspace key for its owner
         * @description For an owner who has lost theirs. The key is shown only in this response.
         */
        post: operations["createOwnerKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{workspace_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Erase a workspace
         * @description Its keys and feeds stop working immediately. The call responds once all data is verified to be deleted. After UNAVAILABLE, a crash or a lost response, repeat the call: it continues, and returns the same result.
         */
        delete: operations["eraseWorkspace"];
        options?: never;
        head?: never;
        /**
         * Edit a workspace
         * @description Renames, suspends or reactivates it, or sets how long its events are kept. Keys of a suspended workspace are refused at once.
         */
        patch: operations["editWorkspace"];
        trace?: never;
    };
    "/api/v1/workspace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the workspace of the key
         * @description Its id and name, and how long its events are kept. Only the operator can change them.
         */
        get: operations["getWorkspace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspace/recount": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Count the usage of all runs again
         * @description In the background, from the stored events of the external runs, by the names and prices that this version knows. A run of which some events have expired keeps the usage that it has, because those can no longer be counted; so does one whose end has reported its usage. One at a time: CONFLICT while another is running.
         */
        post: operations["recountUsage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/feed-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a feed token
         * @description A short-lived token for `?token=` of a feed, because browsers cannot send a header there. It only reads, unless it has `scores`. It sees no more than the key does, and stops working with it.
         */
        post: operations["createFeedToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow activity (server-sent events)
         * @description Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes that kind: `level=warn` returns events only.
         */
        get: operations["streamActivity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow one run (server-sent events)
         * @description Returns 204 if the run has ended and the client has received all of it, so that an EventSource stops.
         */
        get: operations["streamRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow activity (WebSocket)
         * @description One connection carries many subscriptions, each with a filter and a position of its own. `x-websocket` has the schemas of the messages and the close codes.
         */
        get: operations["openLive"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhooks
         * @description Newest first, without secrets.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description Sends what happens from now on. Only this answer has the `secret`.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a webhook
         * @description Its settings, and in `health` how far it has got and whether it answers.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description Pending deliveries are dropped. SQL keeps past attempts.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Edit a webhook
         * @description Changes the given fields, for what is delivered from then on. An endpoint that is enabled again continues at its position.
         */
        patch: operations["editWebhook"];
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the secret of a webhook
         * @description For 24 hours, messages are signed with both the new and the previous secret. CONFLICT after several rotations within a day.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List deliveries
         * @description As of their latest attempts, newest first. `status=pending` also lists those that wait for their first attempt. The SQL table `deliveries` has every attempt.
         */
        get: operations["listWebhookDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/recover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deliver earlier activity again
         * @description Everything since a time or after a cursor, with the same ids, while new activity is delivered as usual. CONFLICT while another recovery is running.
         */
        post: operations["recoverWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/poll": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll for messages
         * @description For receivers without a public address: the same bodies as are sent, from any position. Does not wait for new activity.
         */
        get: operations["pollWebhook"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a webhook
         * @description Sends a message of type `webhook.test` at once, and answers with the result of the attempt.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/resend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resend a delivery
         * @description Sends the message again at once, with the same id. NOT_FOUND when the log no longer has the activity, or the filter of the endpoint no longer matches it.
         */
        post: operations["resendWebhookDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/invoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a hosted agent
         * @description 200 when the run is over, 202 when it waits for a person or continues in the background. A caller that disconnects does not stop its run.
         */
        post: operations["invokeAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/output-stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow the output of a hosted run
         * @description Starts after the frame of `Last-Event-ID` or `after`, or at the beginning; the run may be over. The stream closes when the run ends or waits for a person.
         */
        get: operations["streamRunOutput"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/pauses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all pauses
         * @description Approvals and input requests on one line each: those that wait, or those that were decided, and by whom. An agent key sees those of its own agent.
         */
        get: operations["listPauses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List approvals
         * @description Newest first. An agent key sees those of its own agent.
         */
        get: operations["listApprovals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{approval_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an approval
         * @description The tool and arguments that wait for approval, who asked and what was said before, and the decision once there is one.
         */
        get: operations["getApproval"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{approval_id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a call
         * @description The call runs on exactly the arguments that were shown, or on `edited_input`. The run continues, and the response is that of invoke. A second decision is a CONFLICT.
         */
        post: operations["approveCall"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{approval_id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject a call
         * @description The call is not made, and the model receives the comment. The run continues, and the response is that of invoke. A second decision is a CONFLICT.
         */
        post: operations["rejectCall"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/input-requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List input requests
         * @description Newest first. An agent key sees those of its own agent.
         */
        get: operations["listInputRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/input-requests/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an input request
         * @description The question, who asked for what and what was said before, and the answer once there is one.
         */
        get: operations["getInputRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/input-requests/{request_id}/answer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answer an input request
         * @description The run continues with the answer, and the response is that of invoke. A second answer is a CONFLICT.
         */
        post: operations["answerInputRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/{session_id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the messages of a session
         * @description Of a session that the service itself runs. Oldest first: a conversation is read forwards.
         */
        get: operations["listSessionMessages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/query": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a SQL query
         * @description One SELECT over the events, runs and tasks of the workspace, in ClickHouse SQL. Formats other than `json` are streamed as bare bytes.
         */
        post: operations["runQuery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/query/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the schema for SQL
         * @description Tables, columns and their types, with example queries, the limits of a query, and the prices of models.
         */
        get: operations["getQuerySchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clickhouse/ping": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Ping the ClickHouse interface
         * @description Answers `Ok.`, as ClickHouse does.
         */
        get: operations["clickHousePing"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clickhouse/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Query as a ClickHouse client (GET)
         * @description ClickHouse's HTTP interface, read-only: `query`, `param_*`, `default_format`, output settings. User: any. Password: the workspace key, through Basic auth, `X-ClickHouse-Key` or `password`; or as a bearer token.
         */
        get: operations["clickHouseGet"];
        put?: never;
        /**
         * Query as a ClickHouse client (POST)
         * @description ClickHouse's HTTP interface, read-only: `query`, `param_*`, `default_format`, output settings. User: any. Password: the workspace key, through Basic auth, `X-ClickHouse-Key` or `password`; or as a bearer token.
         */
        post: operations["clickHousePost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List saved queries
         * @description Newest first.
         */
        get: operations["listSavedQueries"];
        put?: never;
        /**
         * Create a saved query
         * @description The query is checked first. A name that is already taken is a CONFLICT.
         */
        post: operations["createSavedQuery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queries/{query_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a saved query
         * @description Its text and the saved values of its placeholders.
         */
        get: operations["getSavedQuery"];
        put?: never;
        post?: never;
        /**
         * Delete a saved query
         * @description Deletes the query, not the data that it reads. While an alert uses it, this is a CONFLICT.
         */
        delete: operations["deleteSavedQuery"];
        options?: never;
        head?: never;
        /**
         * Edit a saved query
         * @description Changes the fields that are given; `params` and `chart` are replaced as a whole. A name that is already taken is a CONFLICT.
         */
        patch: operations["editSavedQuery"];
        trace?: never;
    };
    "/api/v1/queries/{query_id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a saved query
         * @description Responds like `POST /api/v1/query`.
         */
        post: operations["runSavedQuery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/boards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List boards
         * @description Newest first.
         */
        get: operations["listBoards"];
        put?: never;
        /**
         * Create a board
         * @description A name that is already taken is a CONFLICT. Charts are saved queries, by their ids.
         */
        post: operations["createBoard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/boards/{board_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a board
         * @description Its name and the saved queries on it.
         */
        get: operations["getBoard"];
        put?: never;
        post?: never;
        /**
         * Delete a board
         * @description Deletes the page, not the saved queries on it.
         */
        delete: operations["deleteBoard"];
        options?: never;
        head?: never;
        /**
         * Edit a board
         * @description Changes the fields that are given; `charts` are replaced as a whole. `version` is the one that was read: if the board has changed since, the edit is a CONFLICT, and so is a name that is already taken.
         */
        patch: operations["editBoard"];
        trace?: never;
    };
    "/api/v1/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List alerts
         * @description Newest first.
         */
        get: operations["listAlerts"];
        put?: never;
        /**
         * Create an alert
         * @description Checks the query and the columns of its result. The alert is evaluated from the next tick on. A name that is already taken is a CONFLICT.
         */
        post: operations["createAlert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/{alert_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an alert
         * @description Its definition, and the states of its first series.
         */
        get: operations["getAlert"];
        put?: never;
        post?: never;
        /**
         * Delete an alert
         * @description Series that alert are resolved. Its transitions stay in the SQL table `alert_states`.
         */
        delete: operations["deleteAlert"];
        options?: never;
        head?: never;
        /**
         * Edit an alert
         * @description Changes the given fields. If they change what is evaluated, or disable the alert, all states are reset to ok, and series that alert are resolved.
         */
        patch: operations["editAlert"];
        trace?: never;
    };
    "/api/v1/alerts/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List alert templates
         * @description Complete definitions, which can be posted unchanged.
         */
        get: operations["listAlertTemplates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test an alert definition
         * @description Says when it would have fired in the past, without saving it. All its series start as ok.
         */
        post: operations["testAlertDefinition"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/{alert_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test an alert
         * @description Evaluates it again at each tick from `from` to `to`, starting with the states that it had at `from`. The transitions are those that it had live.
         */
        post: operations["testAlert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/scores/{score_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a score
         * @description It leaves the list of scores at once, feeds and SQL within about a minute. Its id stays used: a score with it is CONFLICT with `id_taken`. A repeat returns the same erasure.
         */
        delete: operations["deleteScore"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/erasures/{erasure_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an erasure
         * @description Whether the deletion of a run or a score is complete.
         */
        get: operations["getErasure"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the state of the cluster
         * @description The nodes, and the partitions of the journal with their owners and lags (docs/architecture.md#several-nodes).
         */
        get: operations["getCluster"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check whether the process is alive
         * @description Does not check the stores; see /readyz.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check whether requests can be served
         * @description Checks each store and reports the lag of each consumer of the journal.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read metrics
         * @description Metrics in the Prometheus text format.
         */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the limits
         * @description The configured limits of requests and rates.
         */
        get: operations["getLimits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Something that happened in the workspace. */
        Activity: components["schemas"]["EventActivity"] | components["schemas"]["TaskActivity"] | components["schemas"]["RunActivity"] | components["schemas"]["ScoreActivity"];
        /**
         * @description What an activity is about.
         * @enum {string}
         */
        ActivityKind: "event" | "task" | "run" | "score";
        AddScores: {
            /** @description The scores, in order. Of any runs. */
            scores: components["schemas"]["NewScore"][];
        };
        /** @description An agent. Fields that its runtime type does not have are null. */
        Agent: {
            /**
             * Format: uuid
             * @description The agent.
             */
            agent_id: string;
            /** @description The display name of the agent. */
            name: string;
            /** @description What the agent is for. */
            description: string | null;
            runtime_type: components["schemas"]["RuntimeType"];
            status: components["schemas"]["StoredAgentStatus"];
            /** @description The model that it uses. */
            model: string | null;
            /** @description The system prompt, with `{{KEY}}` placeholders. */
            prompt: string | null;
            /** @description What the model can call. */
            tools: (components["schemas"]["HttpTool"] | components["schemas"]["AgentTool"] | components["schemas"]["McpTool"])[] | null;
            /** @description A JSON Schema that the output of a run must match. */
            output_schema: {
                [key: string]: unknown;
            } | null;
            /** @description A JSON Schema that the `input` of each run must match; null: any input. */
            input_schema: {
                [key: string]: unknown;
            } | null;
            /** @description `mcp`: the agent is a tool of the MCP server of this service. */
            expose: "mcp"[] | null;
            /** @description Whether the model may ask its caller a question. */
            allow_input_requests: boolean | null;
            /** @description Sampling temperature; null: the model's default. */
            temperature: number | null;
            /** @description Maximum length of one answer of the model, in tokens. */
            max_output_tokens: number | null;
            /** @description Model calls that a run may make. */
            max_steps: number | null;
            /** @description Maximum duration of a run. */
            timeout_seconds: number | null;
            /** @description Maximum cost of a run, in US dollars; null: no limit. */
            budget_usd: number | null;
            /** @description A run that is silent for this long is timed_out; null: never. */
            stale_after_seconds: number | null;
            /** @description Data stored with the agent. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description Incremented by each edit that changes something. */
            version: number;
            /**
             * Format: date-time
             * @description When the agent was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
        };
        /** @description A page of a list, newest first. */
        AgentPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Agent"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description A paused agent cannot be invoked; it may still report. Default active.
         * @enum {string}
         */
        AgentStatus: "active" | "paused";
        AgentTool: {
            /** @description Letters, digits, `_` and `-`; unique among the tools of the agent. */
            name: string;
            /** @description Tells the model what the tool is for. */
            description: string;
            /** @description A person must approve each call. Default false. */
            requires_approval?: boolean;
            /**
             * @description A run of another hosted agent of the workspace.
             * @constant
             */
            type: "agent";
            /**
             * Format: uuid
             * @description That agent.
             */
            agent_id: string;
        };
        /** @description A version of an agent, with its configuration. */
        AgentVersion: {
            /**
             * Format: uuid
             * @description The agent.
             */
            agent_id: string;
            /** @description The number of the version. */
            version: number;
            /**
             * Format: date-time
             * @description When the version was made.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: uuid
             * @description The key that made it, or the person who was signed in; null: the service.
             */
            created_by: string | null;
            /** @description The e-mail address of the person who was signed in, or else their name; null for a key. */
            created_by_person: string | null;
            /**
             * @description Names of the fields that differ from the version before; empty for the first.
             * @example [
             *       "prompt",
             *       "tools"
             *     ]
             */
            changes: string[];
            /** @description The version whose configuration was restored; null: it was made by an edit. */
            restored_from: number | null;
            /** @description The display name of the agent. */
            name: string;
            /** @description What the agent is for. */
            description: string | null;
            runtime_type: components["schemas"]["RuntimeType"];
            status: components["schemas"]["StoredAgentStatus"];
            /** @description The model that it uses. */
            model: string | null;
            /** @description The system prompt, with `{{KEY}}` placeholders. */
            prompt: string | null;
            /** @description What the model can call. */
            tools: (components["schemas"]["HttpTool"] | components["schemas"]["AgentTool"] | components["schemas"]["McpTool"])[] | null;
            /** @description A JSON Schema that the output of a run must match. */
            output_schema: {
                [key: string]: unknown;
            } | null;
            /** @description A JSON Schema that the `input` of each run must match; null: any input. */
            input_schema: {
                [key: string]: unknown;
            } | null;
            /** @description `mcp`: the agent is a tool of the MCP server of this service. */
            expose: "mcp"[] | null;
            /** @description Whether the model may ask its caller a question. */
            allow_input_requests: boolean | null;
            /** @description Sampling temperature; null: the model's default. */
            temperature: number | null;
            /** @description Maximum length of one answer of the model, in tokens. */
            max_output_tokens: number | null;
            /** @description Model calls that a run may make. */
            max_steps: number | null;
            /** @description Maximum duration of a run. */
            timeout_seconds: number | null;
            /** @description Maximum cost of a run, in US dollars; null: no limit. */
            budget_usd: number | null;
            /** @description A run that is silent for this long is timed_out; null: never. */
            stale_after_seconds: number | null;
            /** @description Data stored with the agent. */
            metadata: {
                [key: string]: unknown;
            };
        };
        /** @description A page of a list, newest first. */
        AgentVersionPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["AgentVersionSummary"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /** @description A version of an agent, without its configuration. */
        AgentVersionSummary: {
            /**
             * Format: uuid
             * @description The agent.
             */
            agent_id: string;
            /** @description The number of the version. */
            version: number;
            /**
             * Format: date-time
             * @description When the version was made.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: uuid
             * @description The key that made it, or the person who was signed in; null: the service.
             */
            created_by: string | null;
            /** @description The e-mail address of the person who was signed in, or else their name; null for a key. */
            created_by_person: string | null;
            /**
             * @description Names of the fields that differ from the version before; empty for the first.
             * @example [
             *       "prompt",
             *       "tools"
             *     ]
             */
            changes: string[];
            /** @description The version whose configuration was restored; null: it was made by an edit. */
            restored_from: number | null;
        };
        /** @description A query that runs at an interval, and notifies when a condition starts and stops holding. */
        Alert: {
            /**
             * Format: uuid
             * @description The alert.
             */
            alert_id: string;
            /** @description Unique in the workspace. */
            name: string;
            /**
             * Format: uuid
             * @description The saved query; null if the alert has a query of its own.
             */
            query_id: string | null;
            /** @description The query of the alert itself; null if it uses a saved one. */
            query: string | null;
            /** @description Values of placeholders. */
            params: {
                [key: string]: unknown;
            };
            /** @description Time between two evaluations. */
            every: string;
            /** @description The time from `from` to `to`. */
            window: string | null;
            /** @description Columns whose values identify a series. */
            by: string[];
            /** @description When a series fires. */
            condition: {
                /** @description A numeric column of the result. */
                column: string;
                /**
                 * @description How the column is compared with `value`.
                 * @enum {string}
                 */
                op: ">" | ">=" | "<" | "<=" | "=" | "!=";
                /** @description The condition holds when the comparison does. */
                value: number;
                /** @description A firing series keeps firing until the comparison with this value fails, too, so that a value near the threshold does not fire repeatedly. Not with `=` and `!=`. */
                recover_value?: number;
            } | "any_row";
            /** @description How long the condition must hold before a series fires. */
            for: string | null;
            /** @description How long it must not hold before a series is ok again. */
            keep_firing_for: string | null;
            /**
             * @description What a series without a row means.
             * @enum {string}
             */
            no_data: "ok" | "last" | "alert" | "zero";
            /**
             * @description What a failing query means.
             * @enum {string}
             */
            on_error: "last" | "alert";
            /** @description The interval at which `alert.fired` is repeated for a series that still alerts. */
            renotify: string | null;
            /** @description The webhooks that are notified. */
            notify: string[];
            /** @description Whether it is evaluated. */
            enabled: boolean;
            /** @description Series with a state. */
            series_count: number;
            /** @description The first 20 series, those that alert first. All transitions: SQL table `alert_states`. */
            states: components["schemas"]["AlertSeriesState"][];
            /**
             * Format: date-time
             * @description Time of the last evaluation; null before the first.
             * @example 2026-01-31T09:30:00.123Z
             */
            evaluated_at: string | null;
            /**
             * Format: date-time
             * @description Time of the next one; null while it is disabled.
             * @example 2026-01-31T09:30:00.123Z
             */
            next_at: string | null;
            /** @description Why the last evaluation failed, what was skipped, or that the next one is late; null if all is well. */
            error: string | null;
            /** @description Begins at 1, and rises with each edit. Also the `ETag`. */
            version: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
        };
        /** @description A page of a list, newest first. */
        AlertPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Alert"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /** @description The state of one series of an alert. */
        AlertSeriesState: {
            /** @description The values of the columns of `by`; empty for an alert without them. */
            series: {
                [key: string]: unknown;
            };
            /**
             * @description The state of the series.
             * @enum {string}
             */
            state: "ok" | "pending" | "firing" | "recovering" | "no_data" | "error";
            /** @description The value of the condition’s column; null for `any_row` and without a row. */
            value: number | null;
            /**
             * Format: date-time
             * @description Time of the evaluation that led to the state.
             * @example 2026-01-31T09:30:00.123Z
             */
            since: string;
        };
        /** @description Complete definitions to start from. */
        AlertTemplates: {
            /** @description The templates. */
            items: {
                /** @description The name of the template. */
                template: string;
                /** @description What it alerts on. */
                description: string;
                /** @description Can be posted to `/api/v1/alerts` as it is. */
                definition: components["schemas"]["CreateAlert"];
            }[];
        };
        /** @description How the states of an alert would have changed. */
        AlertTest: {
            /** @description In order of time. */
            transitions: components["schemas"]["AlertTransition"][];
            /** @description Evaluations. */
            ticks: number;
            /** @description False if the limit of time, evaluations or transitions ended the test early. */
            complete: boolean;
            /**
             * Format: date-time
             * @description Time of the last evaluation; null if there was none.
             * @example 2026-01-31T09:30:00.123Z
             */
            through: string | null;
            /** @description Why the last failed evaluation failed; null if none failed. */
            error: string | null;
        };
        /** @description A change of the state of a series. */
        AlertTransition: {
            /**
             * @description The type of the event.
             * @enum {string}
             */
            type: "alert.fired" | "alert.resolved" | "alert.changed";
            /** @description The values of the columns of `by`; empty for an alert without them. */
            series: {
                [key: string]: unknown;
            };
            /**
             * @description The previous state.
             * @enum {string}
             */
            from: "ok" | "pending" | "firing" | "recovering" | "no_data" | "error";
            /**
             * @description The new state.
             * @enum {string}
             */
            to: "ok" | "pending" | "firing" | "recovering" | "no_data" | "error";
            /**
             * Format: date-time
             * @description Time of the evaluation.
             * @example 2026-01-31T09:30:00.123Z
             */
            at: string;
            /** @description The value of the condition’s column; null for `any_row` and without a row. */
            value: number | null;
            /** @description Whether it only repeats an earlier `alert.fired` (see `renotify`). */
            renotified: boolean;
        };
        Alive: {
            /**
             * @description The process answers.
             * @constant
             */
            status: "ok";
            /** @description The version of the service. */
            version: string;
            /** @description Seconds since the process started. */
            uptime_seconds: number;
        };
        AnswerInput: {
            /** @description The answer for the model. */
            answer: string;
            /** @description Responds with an event stream. */
            stream?: boolean;
            /** @description Responds 202 at once; the run continues in the background. */
            background?: boolean;
        };
        AppendEvents: {
            /**
             * Format: uuid
             * @description The run that the events belong to.
             */
            run_id: string;
            /** @description The events, in order. */
            events: components["schemas"]["NewEvent"][];
        };
        /** @description A tool call that needs a person to approve it. */
        Approval: {
            /**
             * Format: uuid
             * @description The approval.
             */
            approval_id: string;
            /**
             * Format: uuid
             * @description The run that waits.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The run that was invoked: the same, or an ancestor.
             */
            root_run_id: string;
            /**
             * Format: uuid
             * @description The agent of the run that waits.
             */
            agent_id: string;
            /**
             * Format: date-time
             * @description When the run began to wait.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When it was decided, expired or was cancelled.
             * @example 2026-01-31T09:30:00.123Z
             */
            decided_at: string | null;
            /**
             * Format: uuid
             * @description The key that decided, or the person who was signed in.
             */
            decided_by: string | null;
            /** @description The e-mail address of the person who was signed in, or else their name; null for a key. */
            decided_by_person: string | null;
            status: components["schemas"]["ApprovalStatus"];
            /** @description The tool to be called. */
            tool: string;
            /** @description The arguments of the call. */
            input: {
                [key: string]: unknown;
            };
            /** @description The arguments that it was approved with instead. */
            edited_input: {
                [key: string]: unknown;
            } | null;
            /** @description The comment of the person who decided. */
            comment: string | null;
        };
        ApprovalDetails: {
            /**
             * Format: uuid
             * @description The approval.
             */
            approval_id: string;
            /**
             * Format: uuid
             * @description The run that waits.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The run that was invoked: the same, or an ancestor.
             */
            root_run_id: string;
            /**
             * Format: uuid
             * @description The agent of the run that waits.
             */
            agent_id: string;
            /**
             * Format: date-time
             * @description When the run began to wait.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When it was decided, expired or was cancelled.
             * @example 2026-01-31T09:30:00.123Z
             */
            decided_at: string | null;
            /**
             * Format: uuid
             * @description The key that decided, or the person who was signed in.
             */
            decided_by: string | null;
            /** @description The e-mail address of the person who was signed in, or else their name; null for a key. */
            decided_by_person: string | null;
            status: components["schemas"]["ApprovalStatus"];
            /** @description The tool to be called. */
            tool: string;
            /** @description The arguments of the call. */
            input: {
                [key: string]: unknown;
            };
            /** @description The arguments that it was approved with instead. */
            edited_input: {
                [key: string]: unknown;
            } | null;
            /** @description The comment of the person who decided. */
            comment: string | null;
            context: components["schemas"]["PauseContext"];
        };
        /** @description A page of a list, newest first. */
        ApprovalPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Approval"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description Only a pending one can be decided.
         * @enum {string}
         */
        ApprovalStatus: "pending" | "approved" | "rejected" | "expired" | "cancelled";
        Approve: {
            /** @description The reason; stored, and passed to the model after a rejection. */
            comment?: string | null;
            /** @description Arguments to call the tool with instead of those shown. */
            edited_input?: {
                [key: string]: unknown;
            };
            /** @description Responds with an event stream. */
            stream?: boolean;
            /** @description Responds 202 at once; the run continues in the background. */
            background?: boolean;
        };
        ArchivedAgent: {
            /**
             * Format: uuid
             * @description The agent.
             */
            agent_id: string;
            /**
             * @description It can no longer run or report.
             * @constant
             */
            status: "archived";
        };
        /** @description The run waits for a person to approve a call. */
        AwaitingApproval: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * @description The run waits for an approval.
             * @constant
             */
            status: "awaiting_approval";
            /** @description What it waits for. */
            awaiting_approval: {
                /**
                 * Format: uuid
                 * @description The approval to decide.
                 */
                approval_id: string;
                /** @description The tool to be called. */
                tool: string;
                /** @description The arguments of the call. */
                input: {
                    [key: string]: unknown;
                };
                /**
                 * Format: date-time
                 * @description When it expires; null: never.
                 * @example 2026-01-31T09:30:00.123Z
                 */
                expires_at: string | null;
            };
            /** @description There is no output. */
            output: null;
            /**
             * Format: uuid
             * @description The session in use; null without one.
             */
            session_id: string | null;
        };
        /** @description The run waits for an answer to its question. */
        AwaitingInput: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * @description The run waits for an answer.
             * @constant
             */
            status: "awaiting_input";
            /** @description What it waits for. */
            awaiting_input: {
                /**
                 * Format: uuid
                 * @description The input request to answer.
                 */
                request_id: string;
                /** @description What the model asks. */
                question: string;
                /** @description Suggested answers; absent if the model gave none. */
                options?: string[];
                /**
                 * Format: date-time
                 * @description When it expires; null: never.
                 * @example 2026-01-31T09:30:00.123Z
                 */
                expires_at: string | null;
            };
            /** @description There is no output. */
            output: null;
            /**
             * Format: uuid
             * @description The session in use; null without one.
             */
            session_id: string | null;
        };
        /** @description A named page of charts of saved queries. */
        Board: {
            /**
             * Format: uuid
             * @description The board.
             */
            board_id: string;
            /** @description Unique in the workspace. */
            name: string;
            /** @description In the order of the page. */
            charts: components["schemas"]["BoardChart"][];
            /** @description Begins at 1, and rises with each edit. Also the `ETag`. */
            version: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
        };
        /** @description A saved query on a board. It stays there when the query is deleted, until it is removed. */
        BoardChart: {
            /**
             * Format: uuid
             * @description The saved query, which has the text, the placeholders and the chart.
             */
            query_id: string;
        };
        /** @description A page of a list, newest first. */
        BoardPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Board"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        CancelRun: {
            /** @description Stored as the error_message of the run. */
            reason?: string;
        };
        ChangeWorkspace: {
            /**
             * Format: uuid
             * @description One of the workspaces of the sign-in.
             */
            workspace_id: string;
        };
        /** @description How the page draws the result. What is left out, it chooses by the names and types of columns. */
        Chart: {
            /**
             * @description `area` is stacked, `number` the latest values.
             * @enum {string}
             */
            kind?: "line" | "bar" | "area" | "number";
            /** @description The column of the horizontal axis. */
            x?: string;
            /** @description The columns of the left axis. */
            y?: string[];
            /** @description The columns of the right axis. */
            right?: string[];
            /** @description The column whose values each become a series of the first column of the left axis. */
            series?: string;
            /**
             * @description The unit of the left axis. `percent` is of a share from 0 to 1.
             * @enum {string}
             */
            unit?: "number" | "ms" | "s" | "usd" | "percent" | "bytes";
            /**
             * @description The unit of the right axis. `percent` is of a share from 0 to 1.
             * @enum {string}
             */
            right_unit?: "number" | "ms" | "s" | "usd" | "percent" | "bytes";
        };
        Cluster: {
            /** @description The nodes, oldest first. An embedded service is the only one. */
            nodes: {
                /**
                 * Format: uuid
                 * @description The process.
                 */
                instance_id: string;
                /** @description Where other nodes reach it. */
                url: string;
                /** @description The version that it runs. */
                version: string;
                /**
                 * Format: date-time
                 * @description When it joined.
                 * @example 2026-01-31T09:30:00.123Z
                 */
                started_at: string;
                /** @description Whether it takes part. Others take over the partitions of a dead node. */
                alive: boolean;
                /** @description Whether it is the node that answers. */
                is_this: boolean;
            }[];
            /** @description The partitions of the journal. */
            partitions: {
                /** @description The number of the partition. */
                partition: number;
                /**
                 * Format: uuid
                 * @description The instance that writes it; null while no process does.
                 */
                owner: string | null;
                /** @description How often it was claimed. */
                generation: number;
                /** @description Identifies its sequence of positions. */
                epoch: string;
                /** @description Its last position, as its owner has last reported it. */
                end_seq: number;
                /** @description ClickHouse has everything up to this position. */
                loaded_seq: number;
                /** @description Rows that ClickHouse lacks. */
                lag: number;
            }[];
        };
        CompleteRun: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description The output of the run. */
            output?: {
                [key: string]: unknown;
            };
            usage?: components["schemas"]["ReportedUsage"];
        };
        /** @description A message of the conversation of a run. */
        ConversationMessage: {
            /** @description `system`, `user`, `assistant`, `tool`, or as the sender calls it. */
            role: string;
            /** @description What it consists of, in order. */
            parts: components["schemas"]["MessagePart"][];
            /** @description Whether something of it is shortened or missing, because it is too large. */
            truncated: boolean;
            /** @description The event that it was first seen in; null for the input and output of the run. */
            event_id: string | null;
            /** @description The `seq` of that event. */
            seq: number | null;
            /**
             * Format: date-time
             * @description The `occurred_at` of that event.
             * @example 2026-01-31T09:30:00.123Z
             */
            event_time: string | null;
            /** @description The model that said it; null for other messages. */
            model: string | null;
            /** @description The same for all messages of one conversation with a model, of which a run may have several: the `seq` of its first event. Null for what is reported apart from conversations. */
            thread: number | null;
        };
        /** @description A page of a list, oldest first. */
        ConversationPage: {
            /** @description The items of this page, oldest first. */
            items: components["schemas"]["ConversationMessage"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        CreateAgent: {
            /** @description The display name of the agent. */
            name: string;
            /** @description What the agent is for. */
            description?: string | null;
            status?: components["schemas"]["AgentStatus"];
            /** @description Any data to store with the agent. */
            metadata?: {
                [key: string]: unknown;
            };
            /** @description The provider's name of the model. */
            model?: string;
            /** @description The system prompt, with `{{KEY}}` placeholders that the caller of invoke fills. */
            prompt?: string;
            /** @description What the model can call. */
            tools?: (components["schemas"]["HttpTool"] | components["schemas"]["AgentTool"] | components["schemas"]["McpTool"])[];
            /** @description A JSON Schema that the output of a run must match. */
            output_schema?: {
                [key: string]: unknown;
            } | null;
            /** @description A JSON Schema that the `input` of each run must match. */
            input_schema?: {
                [key: string]: unknown;
            } | null;
            /** @description `mcp`: the agent is a tool of the MCP server of this service. Default none. */
            expose?: "mcp"[] | null;
            /** @description Lets the model ask its caller a question. Default false. */
            allow_input_requests?: boolean;
            /** @description Sampling temperature; null: the model's default. */
            temperature?: number | null;
            /** @description Maximum length of one answer of the model; null: the model's default. */
            max_output_tokens?: number | null;
            /** @description Model calls a run may make. Default 20. */
            max_steps?: number;
            /** @description Maximum duration of a run, not counting time spent waiting for a person. Default 300. */
            timeout_seconds?: number;
            /** @description A run that would exceed it fails. Child runs count towards it. */
            budget_usd?: number | null;
            /** @description A run that is silent for this long is timed_out; null: never. */
            stale_after_seconds?: number | null;
            runtime_type?: components["schemas"]["RuntimeType"];
        };
        CreateAgentKey: {
            /** @description The display name of the key. */
            name?: string | null;
            /**
             * Format: date-time
             * @description When the key expires; null or absent: never.
             */
            expires_at?: string | null;
        };
        CreateAlert: {
            /** @description Unique in the workspace. */
            name: string;
            /**
             * Format: uuid
             * @description A saved query; instead of `query`.
             */
            query_id?: string;
            /** @description One SELECT in ClickHouse SQL; instead of `query_id`. */
            query?: string;
            /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
            params?: {
                [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
            };
            /** @description Time between two evaluations, `1m` to `1d`. */
            every: string;
            /** @description Sets the placeholders `{from:DateTime64(3)}` and `{to:DateTime64(3)}` of the query: `to` is the time of the evaluation, `from` is this long before it. */
            window?: string | null;
            /** @description Columns whose values identify a series. Each series has its own state. None: one series. */
            by?: string[];
            /** @description When a series fires: a comparison, or `any_row` (the result has a row of the series). */
            condition: {
                /** @description A numeric column of the result. */
                column: string;
                /**
                 * @description How the column is compared with `value`.
                 * @enum {string}
                 */
                op: ">" | ">=" | "<" | "<=" | "=" | "!=";
                /** @description The condition holds when the comparison does. */
                value: number;
                /** @description A firing series keeps firing until the comparison with this value fails, too, so that a value near the threshold does not fire repeatedly. Not with `=` and `!=`. */
                recover_value?: number;
            } | "any_row";
            /** @description How long the condition must hold before a series fires. */
            for?: string | null;
            /** @description How long the condition must not hold before a firing series is ok. */
            keep_firing_for?: string | null;
            /**
             * @description What a series without a row means: `ok` (default) counts as ok, `last` keeps its state, `alert` alerts, `zero` is the value 0. Without effect for `any_row`: there, the condition does not hold.
             * @enum {string}
             */
            no_data?: "ok" | "last" | "alert" | "zero";
            /**
             * @description What a failing query means: `last` (default) keeps all states, `alert` alerts.
             * @enum {string}
             */
            on_error?: "last" | "alert";
            /** @description Repeats `alert.fired` at this interval for a series that still alerts. */
            renotify?: string | null;
            /** @description The webhooks that get `alert.fired` and `alert.resolved`. */
            notify?: string[];
            /** @description Whether it is evaluated; true by default. */
            enabled?: boolean;
        };
        CreateBoard: {
            /** @description Unique in the workspace. */
            name: string;
            /** @description In the order of the page; at most 24. */
            charts?: components["schemas"]["BoardChart"][];
        };
        CreateFeedToken: {
            /**
             * Format: uuid
             * @description Limits the token to this agent. A token made with an agent key is always limited to its agent.
             */
            agent_id?: string;
            /**
             * Format: uuid
             * @description Limits the token to this run.
             */
            run_id?: string;
            /** @description The token may write up to 100 scores of one run, for ratings in a browser. They have the source `person`. */
            scores?: {
                /**
                 * Format: uuid
                 * @description The run that it may score, and the only one whose activity it sees.
                 */
                run_id: string;
                /** @description The names of the scores that it may write. */
                names: string[];
                /** @description Whose scores they are, such as your id of the user: a later token with the same subject can change them. Default: only this token can. */
                subject?: string;
            };
            /** @description Lifetime in seconds; 900 by default. */
            ttl_seconds?: number;
        };
        CreateKey: {
            /** @description The display name of the key. */
            name: string;
            /**
             * Format: date-time
             * @description When the key expires; null or absent: never.
             */
            expires_at?: string | null;
        };
        CreateSavedQuery: {
            /** @description Unique in the workspace. */
            name: string;
            /** @description What the query is for. */
            description?: string | null;
            /** @description One SELECT in ClickHouse SQL. */
            query: string;
            /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
            params?: {
                [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
            };
            /** @description How the result is drawn; null for a table. */
            chart?: components["schemas"]["Chart"] | null;
        };
        CreateWebhook: {
            /** @description Receives each message by POST. http or https, without credentials; a public address, or one in EGRESS_ALLOW. */
            url: string;
            /** @description Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes that kind. */
            filter?: components["schemas"]["LiveFilter"] | null;
            /** @description What receives the messages. */
            description?: string | null;
            /** @description Default: `standard`. */
            format?: components["schemas"]["WebhookFormat"];
            /** @description Default: `v1`. It cannot be changed later. */
            signing?: components["schemas"]["WebhookSigning"];
            /** @description Default: `run`. */
            order?: components["schemas"]["WebhookOrder"];
            /**
             * @description Default: `active`. `disabled` for a receiver that only polls: nothing is sent.
             * @enum {string}
             */
            status?: "active" | "disabled";
        };
        CreateWorkspace: {
            /** @description The display name of the workspace. */
            name: string;
        };
        DeletedAlert: {
            /**
             * Format: uuid
             * @description The alert.
             */
            alert_id: string;
            /**
             * @description Always true.
             * @constant
             */
            deleted: true;
        };
        DeletedBoard: {
            /**
             * Format: uuid
             * @description The board.
             */
            board_id: string;
            /**
             * @description Always true.
             * @constant
             */
            deleted: true;
        };
        DeletedQuery: {
            /**
             * Format: uuid
             * @description The saved query.
             */
            query_id: string;
            /**
             * @description Always true.
             * @constant
             */
            deleted: true;
        };
        DeletedRunView: {
            /** @description The name of the deleted view. */
            name: string;
            /**
             * @description Always true.
             * @constant
             */
            deleted: true;
        };
        DeletedSecret: {
            /** @description The name of the deleted secret. */
            name: string;
            /**
             * @description Always true.
             * @constant
             */
            deleted: true;
        };
        DeletedSession: {
            /**
             * Format: uuid
             * @description The session.
             */
            session_id: string;
            /**
             * @description Always true.
             * @constant
             */
            deleted: true;
        };
        DeletedWebhook: {
            /**
             * Format: uuid
             * @description The endpoint.
             */
            webhook_id: string;
            /**
             * @description Always true.
             * @constant
             */
            deleted: true;
        };
        EditAgent: {
            /** @description The display name of the agent. */
            name?: string;
            /** @description What the agent is for. */
            description?: string | null;
            status?: components["schemas"]["AgentStatus"];
            /** @description Any data to store with the agent. */
            metadata?: {
                [key: string]: unknown;
            };
            /** @description The provider's name of the model. */
            model?: string;
            /** @description The system prompt, with `{{KEY}}` placeholders that the caller of invoke fills. */
            prompt?: string;
            /** @description What the model can call. */
            tools?: (components["schemas"]["HttpTool"] | components["schemas"]["AgentTool"] | components["schemas"]["McpTool"])[];
            /** @description A JSON Schema that the output of a run must match. */
            output_schema?: {
                [key: string]: unknown;
            } | null;
            /** @description A JSON Schema that the `input` of each run must match. */
            input_schema?: {
                [key: string]: unknown;
            } | null;
            /** @description `mcp`: the agent is a tool of the MCP server of this service. Default none. */
            expose?: "mcp"[] | null;
            /** @description Lets the model ask its caller a question. Default false. */
            allow_input_requests?: boolean;
            /** @description Sampling temperature; null: the model's default. */
            temperature?: number | null;
            /** @description Maximum length of one answer of the model; null: the model's default. */
            max_output_tokens?: number | null;
            /** @description Model calls a run may make. Default 20. */
            max_steps?: number;
            /** @description Maximum duration of a run, not counting time spent waiting for a person. Default 300. */
            timeout_seconds?: number;
            /** @description A run that would exceed it fails. Child runs count towards it. */
            budget_usd?: number | null;
            /** @description A run that is silent for this long is timed_out; null: never. */
            stale_after_seconds?: number | null;
            /** @description Rejected: fixed at creation. */
            runtime_type?: unknown;
        };
        EditAlert: {
            /**
             * Format: uuid
             * @description A saved query; instead of `query`.
             */
            query_id?: string;
            /** @description One SELECT in ClickHouse SQL; instead of `query_id`. */
            query?: string;
            /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
            params?: {
                [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
            };
            /** @description Sets the placeholders `{from:DateTime64(3)}` and `{to:DateTime64(3)}` of the query: `to` is the time of the evaluation, `from` is this long before it. */
            window?: string | null;
            /** @description Columns whose values identify a series. Each series has its own state. None: one series. */
            by?: string[];
            /** @description How long the condition must hold before a series fires. */
            for?: string | null;
            /** @description How long the condition must not hold before a firing series is ok. */
            keep_firing_for?: string | null;
            /**
             * @description What a series without a row means: `ok` (default) counts as ok, `last` keeps its state, `alert` alerts, `zero` is the value 0. Without effect for `any_row`: there, the condition does not hold.
             * @enum {string}
             */
            no_data?: "ok" | "last" | "alert" | "zero";
            /**
             * @description What a failing query means: `last` (default) keeps all states, `alert` alerts.
             * @enum {string}
             */
            on_error?: "last" | "alert";
            /** @description Repeats `alert.fired` at this interval for a series that still alerts. */
            renotify?: string | null;
            /** @description Unique in the workspace. */
            name?: string;
            /** @description Time between two evaluations, `1m` to `1d`. */
            every?: string;
            /** @description When a series fires: a comparison, or `any_row` (the result has a row of the series). */
            condition?: {
                /** @description A numeric column of the result. */
                column: string;
                /**
                 * @description How the column is compared with `value`.
                 * @enum {string}
                 */
                op: ">" | ">=" | "<" | "<=" | "=" | "!=";
                /** @description The condition holds when the comparison does. */
                value: number;
                /** @description A firing series keeps firing until the comparison with this value fails, too, so that a value near the threshold does not fire repeatedly. Not with `=` and `!=`. */
                recover_value?: number;
            } | "any_row";
            /** @description The webhooks that get `alert.fired` and `alert.resolved`. */
            notify?: string[];
            /** @description Whether it is evaluated; true by default. */
            enabled?: boolean;
        };
        EditBoard: {
            /** @description The version that was read; required unless `If-Match` names it. Another one is a CONFLICT, so that no edit is overwritten unseen. */
            version?: number;
            /** @description Unique in the workspace. */
            name?: string;
            /** @description In the order of the page; at most 24. */
            charts?: components["schemas"]["BoardChart"][];
        };
        EditPerson: {
            status: components["schemas"]["PersonStatus"];
            /** @description With `suspended`: the keys that the person made stay valid. By default they are revoked. */
            keep_keys?: boolean;
        };
        EditRun: {
            /** @description Labels to find the run by, instead of those it has. */
            tags?: string[];
            /** @description Data to store with the run, instead of what it has. */
            metadata?: {
                [key: string]: unknown;
            };
        };
        EditSavedQuery: {
            /** @description Unique in the workspace. */
            name?: string;
            /** @description What the query is for. */
            description?: string | null;
            /** @description One SELECT in ClickHouse SQL. */
            query?: string;
            /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
            params?: {
                [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
            };
            /** @description How the result is drawn; null for a table. */
            chart?: components["schemas"]["Chart"] | null;
        };
        EditWebhook: {
            /** @description Receives each message by POST. http or https, without credentials; a public address, or one in EGRESS_ALLOW. */
            url?: string;
            /** @description Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes that kind. */
            filter?: components["schemas"]["LiveFilter"] | null;
            /** @description What receives the messages. */
            description?: string | null;
            format?: components["schemas"]["WebhookFormat"];
            order?: components["schemas"]["WebhookOrder"];
            /**
             * @description A disabled endpoint keeps its position: once active again, it continues there.
             * @enum {string}
             */
            status?: "active" | "disabled";
        };
        EditWorkspace: {
            /** @description The display name of the workspace. */
            name?: string;
            status?: components["schemas"]["WorkspaceStatus"];
            /** @description Days that events are kept; null: as EVENT_RETENTION_DAYS says. The shorter of the two applies. */
            retention_days?: number | null;
        };
        ErasedWorkspace: {
            /**
             * Format: uuid
             * @description The workspace.
             */
            workspace_id: string;
            /**
             * @description All of its data is deleted.
             * @constant
             */
            status: "erased";
            /** @description The number of deleted objects. */
            deleted: {
                /** @description Deleted events. */
                events: number;
                /** @description Deleted runs. */
                runs: number;
                /** @description Deleted tasks. */
                tasks: number;
                /** @description Deleted agents. */
                agents: number;
                /** @description Deleted keys. */
                keys: number;
            };
        };
        /** @description The envelope of every error. */
        Error: {
            /** @description Null: the call failed. */
            data: null;
            /** @description What went wrong. */
            error: {
                /**
                 * @description Stable; for programs.
                 * @enum {string}
                 */
                code: "VALIDATION_ERROR" | "UNAUTHENTICATED" | "FORBIDDEN" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "CONFLICT" | "PAYLOAD_TOO_LARGE" | "RATE_LIMITED" | "INTERNAL" | "UNAVAILABLE";
                /** @description For people; names the place and what was expected there. */
                message: string;
                /** @description Tells errors of one code apart; for programs. Stable, and open for more. */
                reason?: ("agent_archived" | "agent_not_hosted" | "agent_paused" | "already_decided" | "already_running" | "being_changed" | "body_unreadable" | "feature_off" | "feed_token" | "hosted_run" | "hosted_session" | "id_taken" | "idempotency_key_reused" | "idempotency_key_running" | "in_use" | "journal_replaced" | "key_expired" | "key_in_url" | "key_invalid" | "key_missing" | "key_revoked" | "key_rotated" | "limit_reached" | "model_not_configured" | "name_taken" | "no_route" | "no_workspace" | "not_confirmed" | "not_deliverable" | "not_loaded" | "origin_refused" | "pause_expired" | "person_suspended" | "query_invalid" | "query_too_large" | "query_too_slow" | "rate_limit" | "role_too_low" | "run_ended" | "run_live" | "secret_lost" | "shutting_down" | "too_many_at_once" | "too_many_attempts" | "version_changed" | "workspace_erasing" | "wrong_agent" | "wrong_key_type") | string;
                /** @description The place that the error is about, such as `events[3].payload` or `query.limit`. */
                param?: string;
                /** @description All mistakes that were found in the request; the first one is that of `message`. */
                problems?: {
                    /** @description Its place. */
                    param: string;
                    /** @description What was expected there. */
                    message: string;
                }[];
            };
        };
        /** @description An event of a run. */
        Event: {
            /** @description The caller's id of the event, unique in its run, or a ULID that the service made. */
            id: string;
            /** @description Its position in the order of acceptance. */
            seq: number;
            /**
             * Format: uuid
             * @description The task that it is part of; absent if it names none.
             */
            task_id?: string;
            /** @description The type of the event, such as `llm.call`. */
            type: string;
            level: components["schemas"]["EventLevel"];
            /** @description The content of the event, as it was sent. */
            payload: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it happened, according to the caller.
             * @example 2026-01-31T09:30:00.123Z
             */
            occurred_at: string;
            /**
             * Format: date-time
             * @description When the service accepted it.
             * @example 2026-01-31T09:30:00.123Z
             */
            received_at: string;
        };
        /** @description An event was reported. */
        EventActivity: {
            /** @description Its position: a feed that resumes after it continues with the next activity. */
            cursor: string;
            /**
             * Format: uuid
             * @description The agent that it is about.
             */
            agent_id: string;
            /**
             * Format: uuid
             * @description The run that it is about.
             */
            run_id: string;
            /**
             * Format: date-time
             * @description When the service accepted it.
             * @example 2026-01-31T09:30:00.123Z
             */
            received_at: string;
            /**
             * @description An event was reported.
             * @constant
             */
            kind: "event";
            event: components["schemas"]["EventOfFeed"];
        };
        /**
         * @description How severe the event is.
         * @enum {string}
         */
        EventLevel: "debug" | "info" | "warn" | "error";
        /** @description An event, without `received_at`. */
        EventOfFeed: {
            /** @description The caller's id of the event, unique in its run, or a ULID that the service made. */
            id: string;
            /** @description Its position in the order of acceptance. */
            seq: number;
            /**
             * Format: uuid
             * @description The task that it is part of; absent if it names none.
             */
            task_id?: string;
            /** @description The type of the event, such as `llm.call`. */
            type: string;
            level: components["schemas"]["EventLevel"];
            /** @description The content of the event, as it was sent. */
            payload: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it happened, according to the caller.
             * @example 2026-01-31T09:30:00.123Z
             */
            occurred_at: string;
        };
        /** @description A page of a list, oldest first. */
        EventPage: {
            /** @description The items of this page, oldest first. */
            items: components["schemas"]["Event"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        EventsAccepted: {
            /** @description Events that were stored. */
            accepted: number;
            /** @description Events that the run already had, by their id; they were not stored again. */
            duplicates: number;
            /** @description Position of the first event stored; null when none was. */
            first_seq: number | null;
            /** @description Position of the last event stored; null when none was. */
            last_seq: number | null;
            /** @description With ?partial=true: the events that were not stored. */
            rejected?: {
                /** @description Index of the event in the request, from 0. */
                index: number;
                /** @description What is wrong with it. */
                message: string;
            }[];
        };
        FailRun: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description What went wrong, in one sentence. */
            error_message: string;
            /** @description Details of the failure. Default `{}`. */
            error_detail?: {
                [key: string]: unknown;
            };
            usage?: components["schemas"]["ReportedUsage"];
        };
        FeedToken: {
            /**
             * @description For `?token=` of a feed.
             * @example svc_feed_…
             */
            token: string;
            /**
             * Format: date-time
             * @description When the token expires and its open feeds end; never later than its key.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string;
        };
        HistoryMessage: {
            /**
             * @description Author of the message.
             * @enum {string}
             */
            role: "user" | "assistant";
            /** @description Text of the message. */
            content: string;
        };
        HttpTool: {
            /** @description Letters, digits, `_` and `-`; unique among the tools of the agent. */
            name: string;
            /** @description Tells the model what the tool is for. */
            description: string;
            /** @description A person must approve each call. Default false. */
            requires_approval?: boolean;
            /**
             * @description A call of an HTTP service.
             * @constant
             */
            type: "http";
            /** @description JSON Schema of the arguments, an object. */
            parameters: {
                [key: string]: unknown;
            };
            /**
             * @description With GET, the arguments go into the query string; otherwise into a JSON body.
             * @enum {string}
             */
            method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
            /** @description http or https. */
            url: string;
            /** @description Headers to send, by name. `{{secret:NAME}}` stands for a secret of the workspace. */
            headers?: {
                [key: string]: string;
            };
        };
        /** @description A question of a model to its caller. */
        InputRequest: {
            /**
             * Format: uuid
             * @description The input request.
             */
            request_id: string;
            /**
             * Format: uuid
             * @description The run that waits.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The run that was invoked: the same, or an ancestor.
             */
            root_run_id: string;
            /**
             * Format: uuid
             * @description The agent of the run that waits.
             */
            agent_id: string;
            /**
             * Format: date-time
             * @description When the run began to wait.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When it was decided, expired or was cancelled.
             * @example 2026-01-31T09:30:00.123Z
             */
            decided_at: string | null;
            /**
             * Format: uuid
             * @description The key that decided, or the person who was signed in.
             */
            decided_by: string | null;
            /** @description The e-mail address of the person who was signed in, or else their name; null for a key. */
            decided_by_person: string | null;
            status: components["schemas"]["InputRequestStatus"];
            /** @description What the model asks. */
            question: string;
            /** @description Suggested answers; absent if the model gave none. */
            options?: string[];
            /** @description The answer that the model received. */
            answer: string | null;
        };
        InputRequestDetails: {
            /**
             * Format: uuid
             * @description The input request.
             */
            request_id: string;
            /**
             * Format: uuid
             * @description The run that waits.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The run that was invoked: the same, or an ancestor.
             */
            root_run_id: string;
            /**
             * Format: uuid
             * @description The agent of the run that waits.
             */
            agent_id: string;
            /**
             * Format: date-time
             * @description When the run began to wait.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When it was decided, expired or was cancelled.
             * @example 2026-01-31T09:30:00.123Z
             */
            decided_at: string | null;
            /**
             * Format: uuid
             * @description The key that decided, or the person who was signed in.
             */
            decided_by: string | null;
            /** @description The e-mail address of the person who was signed in, or else their name; null for a key. */
            decided_by_person: string | null;
            status: components["schemas"]["InputRequestStatus"];
            /** @description What the model asks. */
            question: string;
            /** @description Suggested answers; absent if the model gave none. */
            options?: string[];
            /** @description The answer that the model received. */
            answer: string | null;
            context: components["schemas"]["PauseContext"];
        };
        /** @description A page of a list, newest first. */
        InputRequestPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["InputRequest"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description Only a pending one can be answered.
         * @enum {string}
         */
        InputRequestStatus: "pending" | "answered" | "expired" | "cancelled";
        InvokeAgent: {
            /** @description The user message: `message` if it is a string, else the whole object as JSON. */
            input?: {
                [key: string]: unknown;
            };
            /** @description Fills `{{KEY}}` placeholders in the prompt of the agent. */
            prompt_variables?: {
                [key: string]: string;
            };
            /**
             * Format: uuid
             * @description Continues this session. Cannot be combined with start_session or history.
             */
            session_id?: string;
            /** @description Starts a session; the response has its id. */
            start_session?: boolean;
            /** @description Only together with session_id or start_session. */
            external_user_id?: string;
            /** @description Earlier messages, oldest first. */
            history?: components["schemas"]["HistoryMessage"][];
            /**
             * Format: uuid
             * @description The run of the same workspace that started this one.
             */
            parent_run_id?: string;
            /** @description Responds with an event stream. */
            stream?: boolean;
            /** @description Responds 202 at once; the run continues in the background. */
            background?: boolean;
        };
        /** @description A key, without its secret. */
        Key: {
            /**
             * Format: uuid
             * @description The id of the key.
             */
            key_id: string;
            type: components["schemas"]["KeyType"];
            /** @description The display name of the key. */
            name: string | null;
            /**
             * Format: uuid
             * @description The agent of an agent key; null for a workspace key.
             */
            agent_id: string | null;
            /** @description The first characters of the key, to recognise it. */
            prefix: string;
            /** @description The last four characters of the key. */
            last4: string;
            status: components["schemas"]["KeyStatus"];
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: uuid
             * @description The person who made the key, or whose key made it; null if that is nobody who signed in.
             */
            created_by: string | null;
            /** @description The name or e-mail address of that person. */
            created_by_name: string | null;
            /**
             * Format: date-time
             * @description When the key was last used, up to some seconds late; null: never used.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description When the key expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When the key was revoked; null: it is not.
             * @example 2026-01-31T09:30:00.123Z
             */
            revoked_at: string | null;
            /**
             * Format: uuid
             * @description The key that replaced this one by rotation.
             */
            replaced_by: string | null;
        };
        /** @description A page of a list, newest first. */
        KeyPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Key"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description Only an active key is accepted.
         * @enum {string}
         */
        KeyStatus: "active" | "revoked" | "expired";
        /**
         * @description An agent key acts for one agent; a workspace key manages the workspace.
         * @enum {string}
         */
        KeyType: "agent" | "workspace";
        /** @description Sizes in bytes, lengths in characters. */
        Limits: {
            /** @description A request body, decompressed. */
            body_bytes: number;
            /** @description Events of one call. */
            events_per_call: number;
            /** @description The payload of one event. */
            event_payload_bytes: number;
            /** @description The input of a run. */
            run_input_bytes: number;
            /** @description The output of a run. */
            run_output_bytes: number;
            /** @description The prompt of an agent with its placeholders replaced. */
            prompt_length: number;
            /** @description The type of an event. */
            type_length: number;
            /** @description The name of a task. */
            task_name_length: number;
            /** @description external_run_id and external_user_id. */
            external_id_length: number;
            /** @description Tags of a run. */
            tags: number;
            /** @description One tag. */
            tag_length: number;
            /** @description Levels of nesting in JSON. */
            json_depth: number;
            /** @description An OpenTelemetry export, decompressed. */
            otlp_bytes: number;
            /** @description Agents of a workspace beyond which OpenTelemetry exports register none. */
            otlp_agents: number;
            /** @description Budgets of each key; 0: unlimited. */
            rate_limits: {
                /** @description Requests that report activity. */
                ingest_requests_per_minute: number;
                /** @description Reported events. */
                events_per_second: number;
                /** @description Calls of invoke. */
                invokes_per_minute: number;
                /** @description Requests that read or manage. */
                reads_per_minute: number;
                /** @description SQL queries. */
                queries_per_minute: number;
            };
        };
        /** @description A run of a list. */
        ListedRun: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The agent that ran.
             */
            agent_id: string;
            /** @description The version of the agent when the run started. */
            agent_version: number;
            status: components["schemas"]["RunStatus"];
            trigger_type: components["schemas"]["TriggerType"];
            /** @description The caller's own name for the run. */
            external_run_id: string | null;
            /**
             * Format: uuid
             * @description The run that started this one.
             */
            parent_run_id: string | null;
            /** @description The session that the run belongs to. */
            session_id: string | null;
            /** @description The caller's own name for the user. */
            external_user_id: string | null;
            /** @description Labels to find the run by. */
            tags: string[];
            /** @description Data that the caller stores with the run. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description The input of the run, with `include=input`. */
            input?: {
                [key: string]: unknown;
            };
            /** @description The output of the run, with `include=output`; null unless it completed. */
            output?: {
                [key: string]: unknown;
            } | null;
            /** @description One line about the input, of at most 240 characters; null if there is none, or it is too large. */
            input_preview: string | null;
            /** @description One line about the output, of at most 240 characters; null if there is none, or it is too large. */
            output_preview: string | null;
            /** @description Why the run failed, was cancelled or timed out. */
            error_message: string | null;
            /** @description Details of the failure. */
            error_detail: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: date-time
             * @description When the run was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it first ran; null while it is queued.
             * @example 2026-01-31T09:30:00.123Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @description When it ended; null until then.
             * @example 2026-01-31T09:30:00.123Z
             */
            completed_at: string | null;
            /** @description From started_at to completed_at. */
            duration_ms: number | null;
            /** @description duration_ms without waiting_ms. */
            active_ms: number | null;
            /** @description How long the run waited for people, to approve a call or to answer a question, without the wait that began at `waiting_since`. 0 for external runs. */
            waiting_ms: number;
            /**
             * Format: date-time
             * @description Since when it waits for a person; null if it does not.
             * @example 2026-01-31T09:30:00.123Z
             */
            waiting_since: string | null;
            usage: components["schemas"]["Usage"];
            /** @description Cost of all model calls, in US dollars. Trails the last accepted event by about a second, like `usage`. */
            cost_usd: number;
            /** @description Events reported so far. Trails the last accepted event by about a second. */
            event_count: number;
            /**
             * Format: date-time
             * @description When the service received the last event.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_event_at: string | null;
            /** @description What the run waits for; null if it is not waiting. */
            pending: components["schemas"]["PendingPause"] | null;
            /** @description Begins at 1, and rises with each change of the tags or the metadata, whoever makes it. Also the `ETag`. */
            version: number;
            /** @description Where a run has what was searched. */
            match?: components["schemas"]["SearchMatch"] | null;
        };
        /** @description Activity that matches the subscription. */
        LiveActivity: {
            /**
             * @description Activity of a subscription.
             * @constant
             */
            op: "activity";
            /** @description The client's name for the subscription. */
            id: string;
            /** @description In order. */
            items: components["schemas"]["Activity"][];
            /** @description With `max_per_second`: how many activities were skipped. */
            skipped?: number;
        };
        /** @description What a client sends. */
        LiveClientMessage: components["schemas"]["LiveSubscribe"] | components["schemas"]["LiveUnsubscribe"] | components["schemas"]["LivePing"];
        /** @description The service is about to close the connection. */
        LiveClosing: {
            /**
             * @description The service is about to close the connection.
             * @constant
             */
            op: "closing";
            /** @description Why: `shutdown` or `slow_consumer`. */
            reason: string;
            /** @description When to connect again. */
            reconnect_after_ms: number;
            /** @description Where to resume each subscription, by its id: everything up to there has been sent. */
            cursors?: {
                [key: string]: string;
            };
            /** @description The earliest of them. */
            cursor?: string;
        };
        /** @description A message was refused, or a subscription has failed. The connection stays open. */
        LiveError: {
            /**
             * @description A message was refused, or a subscription has failed.
             * @constant
             */
            op: "error";
            /** @description The client's name for the subscription. */
            id?: string;
            /**
             * @description What went wrong.
             * @enum {string}
             */
            code: "VALIDATION_ERROR" | "UNAUTHENTICATED" | "FORBIDDEN" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "CONFLICT" | "PAYLOAD_TOO_LARGE" | "RATE_LIMITED" | "INTERNAL" | "UNAVAILABLE";
            /** @description What went wrong, in one sentence. */
            message: string;
            /** @description Tells errors of one code apart, as in answers. */
            reason?: string;
            /** @description The place in the message, such as `filter.level[0]`. */
            param?: string;
        };
        /** @description Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes that kind. */
        LiveFilter: {
            /** @description Activity of these agents. */
            agent_id?: string | string[];
            /** @description Activity of these runs. */
            run_id?: string | string[];
            /** @description Events, scores and tasks only: of these tasks. */
            task_id?: string | string[];
            /** @description Activity of runs of these sessions. */
            session_id?: string | string[];
            /** @description Activity of runs of these users, by your own names. */
            external_user_id?: string | string[];
            /** @description Activity of these kinds. */
            kind?: ("event" | "task" | "run" | "score") | ("event" | "task" | "run" | "score")[];
            /** @description Events only: these types. A trailing `*` matches a prefix. */
            type?: string | string[];
            /** @description Events only: this level or higher. */
            level?: components["schemas"]["EventLevel"] | components["schemas"]["EventLevel"][];
            /** @description Runs and tasks only: these statuses. */
            status?: string | string[];
            /** @description Runs only: any of these tags. */
            tag?: string | string[];
        };
        /** @description Requested activity is missing: retention has deleted it, or the journal has been replaced. */
        LiveGap: {
            /**
             * @description Activity is missing.
             * @constant
             */
            op: "gap";
            /** @description The client's name for the subscription. */
            id: string;
            /** @description The requested cursor. */
            after: string;
            /** @description The cursor that the feed continues from; activity in between is missing. */
            resumed_at: string;
        };
        /** @description Answered by `pong`. */
        LivePing: {
            /**
             * @description Checks the connection.
             * @constant
             */
            op: "ping";
        };
        /** @description The answer to `ping`. */
        LivePong: {
            /**
             * @description The connection is alive.
             * @constant
             */
            op: "pong";
        };
        /** @description What the service sends. */
        LiveServerMessage: components["schemas"]["LiveSubscribed"] | components["schemas"]["LiveActivity"] | components["schemas"]["LiveGap"] | components["schemas"]["LiveError"] | components["schemas"]["LivePong"] | components["schemas"]["LiveClosing"];
        /** @description Opens a subscription. Answered by `subscribed`. */
        LiveSubscribe: {
            /**
             * @description Asks for activity.
             * @constant
             */
            op: "subscribe";
            /** @description The client's name for the subscription. */
            id: string;
            /** @description What to send; default: everything. */
            filter?: components["schemas"]["LiveFilter"];
            /** @description Resume after this cursor; 0: from the oldest retained activity. Without it, only new activity. */
            after?: string | number;
            /** @description Maximum number of activities per second; the others are counted in `skipped`. */
            max_per_second?: number;
        };
        /** @description The subscription is open. */
        LiveSubscribed: {
            /**
             * @description The subscription is open.
             * @constant
             */
            op: "subscribed";
            /** @description The client's name for the subscription. */
            id: string;
            /** @description Activity after this position follows. */
            cursor: string;
            /** @description It resumes where it was asked to, without a gap. */
            recovered: boolean;
        };
        /** @description Ends a subscription. */
        LiveUnsubscribe: {
            /**
             * @description Ends a subscription.
             * @constant
             */
            op: "unsubscribe";
            /** @description The client's name for the subscription. */
            id: string;
        };
        McpTool: {
            /** @description Letters, digits, `_` and `-`; unique among the tools of the agent. */
            name: string;
            /** @description Tells the model what the tool is for. */
            description: string;
            /** @description A person must approve each call. Default false. */
            requires_approval?: boolean;
            /**
             * @description The tools of a Model Context Protocol server.
             * @constant
             */
            type: "mcp";
            /** @description http or https. */
            server_url: string;
            /** @description Names of the tools that the model may call; default all. */
            allowed_tools?: string[];
            /** @description Headers to send, by name. `{{secret:NAME}}` stands for a secret of the workspace. */
            headers?: {
                [key: string]: string;
            };
        };
        /** @description A message of a session. */
        Message: {
            /** @description Its position in the session, from 1. */
            position: number;
            /**
             * @description Author of the message.
             * @enum {string}
             */
            role: "user" | "assistant";
            /** @description Text of the message. */
            content: string;
            /**
             * Format: uuid
             * @description The run that it belongs to.
             */
            run_id: string;
            /**
             * Format: date-time
             * @description When it was stored.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
        };
        /** @description A page of a list, oldest first. */
        MessagePage: {
            /** @description The items of this page, oldest first. */
            items: components["schemas"]["Message"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /** @description A part of a message. */
        MessagePart: {
            /**
             * @description The kind of the part.
             * @constant
             */
            type: "text";
            /** @description What is said. */
            text: string;
        } | {
            /**
             * @description The kind of the part.
             * @constant
             */
            type: "reasoning";
            /** @description What the model thought. */
            text: string;
        } | {
            /**
             * @description The kind of the part.
             * @constant
             */
            type: "tool_call";
            /** @description By which the result names the call; null if the sender gave none. */
            id: string | null;
            /** @description The tool. */
            name: string;
            /** @description Any JSON; null if there are none. */
            arguments: unknown;
        } | {
            /**
             * @description The kind of the part.
             * @constant
             */
            type: "tool_result";
            /** @description By which the result names the call; null if the sender gave none. */
            id: string | null;
            /** @description Any JSON; null if there is none. */
            result: unknown;
            /** @description Whether the sender says that the call failed. */
            failed: boolean;
        } | {
            /**
             * @description The kind of the part.
             * @constant
             */
            type: "media";
            /** @description `image`, `audio`, `video`, `document`, `file` or `base64`. */
            kind: string;
            /** @description Such as `image/png`; null if the sender gave none. */
            media_type: string | null;
            /** @description About how many; null if they are elsewhere. */
            bytes: number | null;
            /** @description Where it is on the web. The bytes themselves are left out. */
            url: string | null;
        } | {
            /**
             * @description The kind of the part.
             * @constant
             */
            type: "other";
            /** @description A part of no known kind, as it was sent. */
            value: unknown;
        };
        NewEvent: {
            /** @description A second event of the run with the same id is a duplicate. */
            id?: string;
            /**
             * Format: uuid
             * @description The task of the run that the event is part of. The task may be reported later.
             */
            task_id?: string;
            /** @description The type of the event. The prefixes run., task., approval., input. are reserved for system events. */
            type: string;
            /**
             * @description How severe the event is.
             * @default info
             * @enum {string}
             */
            level: "debug" | "info" | "warn" | "error";
            /** @description The content of the event. Default `{}`. */
            payload?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it happened, in RFC 3339; default: the time of the call.
             * @example 2026-01-31T09:30:00.123Z
             */
            occurred_at?: string;
        };
        /** @description A new key, with its secret. */
        NewKey: {
            /**
             * Format: uuid
             * @description The id of the key.
             */
            key_id: string;
            type: components["schemas"]["KeyType"];
            /** @description The display name of the key. */
            name: string | null;
            /**
             * Format: uuid
             * @description The agent of an agent key; null for a workspace key.
             */
            agent_id: string | null;
            /** @description The first characters of the key, to recognise it. */
            prefix: string;
            /** @description The last four characters of the key. */
            last4: string;
            status: components["schemas"]["KeyStatus"];
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: uuid
             * @description The person who made the key, or whose key made it; null if that is nobody who signed in.
             */
            created_by: string | null;
            /** @description The name or e-mail address of that person. */
            created_by_name: string | null;
            /**
             * Format: date-time
             * @description When the key was last used, up to some seconds late; null: never used.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description When the key expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When the key was revoked; null: it is not.
             * @example 2026-01-31T09:30:00.123Z
             */
            revoked_at: string | null;
            /**
             * Format: uuid
             * @description The key that replaced this one by rotation.
             */
            replaced_by: string | null;
            /** @description The secret: shown only now and not stored. */
            key: string;
        };
        NewRunScore: {
            /** @description Identifies the score in its run: a later score with the same id replaces it, and one with the same content is a duplicate. Default: a new ULID. */
            id?: string;
            /**
             * Format: uuid
             * @description The task of the run that is scored. At most one of task, event and session.
             */
            task_id?: string;
            /** @description The event of the run that is scored. */
            event_id?: string;
            /** @description The session that is scored. */
            session_id?: string;
            /** @description What is scored, such as `correctness`. */
            name: string;
            /** @description A number, or true or false, which SQL shows as 1 and 0. */
            value?: number | boolean;
            /** @description A category, such as `refund`. */
            label?: string;
            /** @description A verdict in words. */
            text?: string;
            /** @description The reason for the score. */
            comment?: string;
            /** @description Default: `person` for people who are signed in and for feed tokens, otherwise `api`. */
            source?: components["schemas"]["ScoreSource"];
            /** @description Any other data to store with the score. Default `{}`. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the score was given. Default: the time of the call.
             */
            created_at?: string;
        };
        NewScore: {
            /**
             * Format: uuid
             * @description The run that is scored.
             */
            run_id: string;
            /** @description Identifies the score in its run: a later score with the same id replaces it, and one with the same content is a duplicate. Default: a new ULID. */
            id?: string;
            /**
             * Format: uuid
             * @description The task of the run that is scored. At most one of task, event and session.
             */
            task_id?: string;
            /** @description The event of the run that is scored. */
            event_id?: string;
            /** @description The session that is scored. */
            session_id?: string;
            /** @description What is scored, such as `correctness`. */
            name: string;
            /** @description A number, or true or false, which SQL shows as 1 and 0. */
            value?: number | boolean;
            /** @description A category, such as `refund`. */
            label?: string;
            /** @description A verdict in words. */
            text?: string;
            /** @description The reason for the score. */
            comment?: string;
            /** @description Default: `person` for people who are signed in and for feed tokens, otherwise `api`. */
            source?: components["schemas"]["ScoreSource"];
            /** @description Any other data to store with the score. Default `{}`. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the score was given. Default: the time of the call.
             */
            created_at?: string;
        };
        /** @description An endpoint with its new secret. */
        NewWebhook: {
            /**
             * Format: uuid
             * @description The endpoint.
             */
            webhook_id: string;
            /** @description Where messages are sent, as it is called; for people who are no admins only its origin. */
            url: string;
            /** @description What receives the messages. */
            description: string | null;
            /** @description Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes that kind. */
            filter: components["schemas"]["LiveFilter"] | null;
            format: components["schemas"]["WebhookFormat"];
            signing: components["schemas"]["WebhookSigning"];
            order: components["schemas"]["WebhookOrder"];
            /**
             * @description `behind`: so many deliveries are pending that the endpoint stops at its position until some succeed or are given up.
             * @enum {string}
             */
            status: "active" | "behind" | "disabled";
            /** @description Why the service has disabled the endpoint; null if it has not. */
            disabled_reason: string | null;
            /** @description Verifies signatures of `v1a`: `whpk_…`; null for `v1`. */
            public_key: string | null;
            /** @description Begins at 1, and rises with each edit. Also the `ETag`. */
            version: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
            health: components["schemas"]["WebhookHealth"];
            /** @description Verifies signatures of `v1`: `whsec_…`, shown only now; null for `v1a`. */
            secret: string | null;
        };
        /** @description A workspace just created, with its first key. */
        NewWorkspace: {
            /**
             * Format: uuid
             * @description The workspace.
             */
            workspace_id: string;
            /** @description The display name of the workspace. */
            name: string;
            status: components["schemas"]["WorkspaceStatus"];
            /** @description Days that events are kept; null: as EVENT_RETENTION_DAYS says. The shorter of the two applies. */
            retention_days: number | null;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
            /**
             * Format: uuid
             * @description Its first workspace key.
             */
            key_id: string;
            /** @description The secret: shown only now and not stored. */
            key: string;
        };
        /** @description The run waits for an approval; the stream ends. */
        OutputAwaitingApproval: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The approval to decide.
             */
            approval_id: string;
            /** @description The tool to be called. */
            tool: string;
            /** @description The arguments of the call. */
            input: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
        };
        /** @description The run waits for an answer; the stream ends. */
        OutputAwaitingInput: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The input request to answer.
             */
            request_id: string;
            /** @description What the model asks. */
            question: string;
            /** @description Suggested answers; absent if the model gave none. */
            options?: string[];
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
        };
        /** @description Text that the model writes. */
        OutputChunk: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description The text that follows. */
            delta: string;
            /** @description The model call that it belongs to, from 1. */
            step: number;
            /** @description Characters of this step before `delta`. If it is smaller than expected, the text from there on is retracted. */
            offset: number;
        };
        /** @description The run has completed; the stream ends. */
        OutputDone: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description The output of the run. */
            output: {
                [key: string]: unknown;
            };
            /**
             * Format: uuid
             * @description The session in use; null without one.
             */
            session_id: string | null;
            /**
             * @description The run has completed.
             * @constant
             */
            status: "completed";
            usage: components["schemas"]["Usage"];
        };
        /** @description The run ended without an output; the stream ends. */
        OutputError: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description The `reason` of `error_detail`, or the status. */
            code: string;
            /** @description What went wrong, in one sentence. */
            message: string;
            /** @description How the run ended. */
            status: components["schemas"]["RunStatus"];
            usage: components["schemas"]["Usage"];
        };
        /** @description A call of a tool. */
        OutputTool: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description The call, as the model names it. */
            tool_call_id: string;
            /** @description The tool. */
            name: string;
            /**
             * @description State of the call.
             * @enum {string}
             */
            phase: "started" | "finished" | "failed";
            /** @description The arguments; with `started`. */
            input?: {
                [key: string]: unknown;
            };
            /** @description The result of the tool; with `finished` and `failed`. */
            output?: unknown;
            /** @description How long the call took. */
            duration_ms?: number;
        };
        /** @description The workspace of the key. */
        OwnWorkspace: {
            /**
             * Format: uuid
             * @description The workspace.
             */
            workspace_id: string;
            /** @description The display name of the workspace. */
            name: string;
            /** @description Days that events are kept, by the setting of the workspace or of the service, whichever is shorter; null: without end. */
            events_kept_days: number | null;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
        };
        /** @description Who asked, and what was said before. */
        PauseContext: {
            /** @description The session of the run that was invoked. */
            session_id: string | null;
            /** @description The caller's own name for the user of that run. */
            external_user_id: string | null;
            /** @description What the run was asked: the message of its user, or of the agent above it. A long one is shortened. */
            user_message: string | null;
            /** @description What the model said last: with this call, or before it. A long text is shortened. */
            assistant_message: string | null;
        };
        /**
         * @description Approvals are `approved` or `rejected`, input requests `answered`; both may expire, or be cancelled with their run.
         * @enum {string}
         */
        PauseStatus: "pending" | "approved" | "rejected" | "answered" | "expired" | "cancelled";
        /** @description An approval or an input request, on one line. */
        PauseSummary: {
            /**
             * Format: uuid
             * @description The `approval_id` or `request_id`.
             */
            pause_id: string;
            type: components["schemas"]["PauseType"];
            status: components["schemas"]["PauseStatus"];
            /**
             * Format: uuid
             * @description The run that waits.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The run that was invoked: the same, or an ancestor.
             */
            root_run_id: string;
            /**
             * Format: uuid
             * @description The agent of the run that waits.
             */
            agent_id: string;
            /** @description The session of the run that was invoked. */
            session_id: string | null;
            /** @description The caller's own name for the user of that run. */
            external_user_id: string | null;
            /** @description The tool to be called; null for a question. */
            tool: string | null;
            /** @description The arguments or the question: the first 300 characters. */
            preview: string;
            /**
             * Format: date-time
             * @description When the run began to wait.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When it was decided, expired or was cancelled.
             * @example 2026-01-31T09:30:00.123Z
             */
            decided_at: string | null;
            /**
             * Format: uuid
             * @description The key that decided, or the person who was signed in.
             */
            decided_by: string | null;
            /** @description The e-mail address of the person who was signed in, or else their name; null for a key. */
            decided_by_person: string | null;
            /** @description The comment of the person who decided, or the answer: the first 300 characters. */
            reply: string | null;
            /** @description Whether the call was approved with other arguments. */
            is_edited: boolean;
        };
        /** @description A page of a list, newest first unless `order` is `oldest`; with a filter, a page may be shorter than `limit`, even empty, while `next_cursor` is not null. */
        PauseSummaryPage: {
            /** @description The items of this page, newest first unless `order` is `oldest`; with a filter, a page may be shorter than `limit`, even empty, while `next_cursor` is not null. */
            items: components["schemas"]["PauseSummary"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description An approval, or an input request.
         * @enum {string}
         */
        PauseType: "approval" | "input";
        /** @description What the run waits for. */
        PendingPause: {
            /**
             * @description A tool call waits for a person to approve it.
             * @constant
             */
            type: "approval";
            /**
             * Format: uuid
             * @description The approval.
             */
            id: string;
            /**
             * Format: uuid
             * @description The run that waits: this one, or one that it started.
             */
            run_id: string;
            /** @description The tool to be called. */
            tool: string;
            /** @description The arguments of the call. */
            input: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
        } | {
            /**
             * @description The model waits for an answer to its question.
             * @constant
             */
            type: "input";
            /**
             * Format: uuid
             * @description The input request.
             */
            id: string;
            /**
             * Format: uuid
             * @description The run that waits: this one, or one that it started.
             */
            run_id: string;
            /** @description What the model asks. */
            question: string;
            /** @description Suggested answers; absent if the model gave none. */
            options?: string[];
            /**
             * Format: date-time
             * @description When it expires; null: never.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string | null;
        };
        /** @description Someone who has signed in. */
        Person: {
            /**
             * Format: uuid
             * @description The person, in this workspace.
             */
            person_id: string;
            /** @description Identifies the person at the OpenID provider. */
            subject: string;
            /** @description The name that the provider gave. */
            name: string | null;
            /** @description The e-mail address that the provider gave. */
            email: string | null;
            role: components["schemas"]["PersonRole"];
            status: components["schemas"]["PersonStatus"];
            /**
             * Format: date-time
             * @description When the person first signed in.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the person last signed in.
             * @example 2026-01-31T09:30:00.123Z
             */
            signed_in_at: string;
        };
        /** @description Someone who has signed in, and where. */
        PersonDetail: {
            /**
             * Format: uuid
             * @description The person, in this workspace.
             */
            person_id: string;
            /** @description Identifies the person at the OpenID provider. */
            subject: string;
            /** @description The name that the provider gave. */
            name: string | null;
            /** @description The e-mail address that the provider gave. */
            email: string | null;
            role: components["schemas"]["PersonRole"];
            status: components["schemas"]["PersonStatus"];
            /**
             * Format: date-time
             * @description When the person first signed in.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the person last signed in.
             * @example 2026-01-31T09:30:00.123Z
             */
            signed_in_at: string;
            /** @description Where they are signed in, newest first. */
            sign_ins: components["schemas"]["SignIn"][];
        };
        /** @description A page of a list, newest first. */
        PersonPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Person"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description A viewer reads; an approver also decides and cancels; an admin may do all.
         * @enum {string}
         */
        PersonRole: "viewer" | "approver" | "admin";
        /**
         * @description A suspended person cannot sign in.
         * @enum {string}
         */
        PersonStatus: "active" | "suspended";
        PutRunView: {
            /** @description Filters, columns and order, as the address of the dashboard's list of runs has them. */
            query: string;
        };
        PutSecret: {
            /** @description A valid header value: one line, without leading or trailing spaces. */
            value: string;
        };
        QueryAnswer: {
            /** @description In the order of the query. */
            columns: {
                /** @description The name of the column in the query. */
                name: string;
                /** @description As ClickHouse names it, such as `DateTime64(3, 'UTC')`. */
                type: string;
            }[];
            /** @description Each row is an object of its columns. 64-bit integers are numbers with all their digits. */
            rows: {
                [key: string]: unknown;
            }[];
            /** @description Rows in this answer. */
            row_count: number;
            /** @description The result had more rows than the limit. */
            truncated: boolean;
            /** @description Rows and bytes are those of the answer. How much the engine scanned is not reported: it reads blocks that may contain rows of several workspaces, so the figure would reveal something about other tenants. */
            statistics: {
                /** @description How long the query ran. */
                elapsed_ms: number;
                /** @description Rows of the answer. */
                rows_read: number;
                /** @description Bytes of the answer, as the engine holds it. */
                bytes_read: number;
            };
            /** @description Everything accepted up to this position was readable by the query. */
            complete_through: string;
        };
        QueryCatalogue: {
            /** @description What a query can read. */
            tables: {
                /** @description The table. */
                name: string;
                /** @description What one row represents. */
                description: string;
                /** @description Its columns, in order. */
                columns: {
                    /** @description The column. */
                    name: string;
                    /** @description As ClickHouse names it, such as `DateTime64(3, 'UTC')`. */
                    type: string;
                    /** @description What it contains. */
                    description: string;
                    /** @description Whether it can be null. */
                    nullable: boolean;
                }[];
            }[];
            /** @description Queries that run unchanged. */
            examples: {
                /** @description A short title. */
                title: string;
                /** @description What the result shows. */
                description: string;
                /** @description The query. */
                query: string;
                /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
                params?: {
                    [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
                };
            }[];
            /** @description Resource limits of a query. */
            caps: {
                /** @description Maximum run time of a query, in seconds. */
                seconds: number;
                /** @description Maximum memory of a query, in bytes. */
                memory_bytes: number;
                /** @description Maximum rows of a JSON answer; `truncated` is true if there were more. */
                rows: number;
                /** @description Maximum size of a result in the memory of the engine, in bytes. */
                result_bytes: number;
                /** @description Maximum number of concurrent queries of the workspace. */
                at_once: number;
            };
            /** @description The prices of `MODEL_PRICES`, by model; a name that ends with `*` is a prefix. With the list prices, they are the cost of model calls that do not report one. */
            model_prices: {
                [key: string]: {
                    /** @description USD per million input tokens. */
                    input: number;
                    /** @description USD per million output tokens. */
                    output: number;
                };
            };
        };
        Ready: {
            /**
             * @description `degraded`: reports are accepted, but something else does not work.
             * @enum {string}
             */
            status: "ready" | "degraded";
            /** @description The stores, by name. */
            dependencies: {
                [key: string]: {
                    /** @description Whether it works. */
                    ok: boolean;
                    /** @description How long the check took, in milliseconds. */
                    latency_ms: number;
                    /** @description Why it does not work; null when it does. */
                    problem: string | null;
                };
            };
            /** @description The log of all accepted activity, or of the first of its partitions that this node owns; null when it owns none. */
            journal: {
                /** @description Identifies the sequence of positions. A new epoch begins when the journal has gone back to an earlier state. */
                epoch: string;
                /** @description The last assigned position. */
                end_seq: number;
                /** @description Positions whose rows were lost. */
                gaps: {
                    /** @description The last position before the gap. */
                    after_seq: number;
                    /** @description The last position of the gap. */
                    through_seq: number;
                }[];
            } | null;
            /** @description The partitions of the journal that this node owns. */
            partitions: {
                /** @description The number of the partition. */
                partition: number;
                /** @description How often it was claimed by a node. */
                generation: number;
                /** @description Identifies the sequence of positions. A new epoch begins when the journal has gone back to an earlier state. */
                epoch: string;
                /** @description The last assigned position. */
                end_seq: number;
                /** @description ClickHouse has everything up to this position. */
                loaded_seq: number;
            }[];
            /** @description The background loops, by name. */
            loops: {
                [key: string]: {
                    /** @description False when it has been failing for several seconds. */
                    ok: boolean;
                    /** @description Milliseconds since it began to fail; 0 while it works. */
                    failing_ms: number;
                    /** @description Failed rounds since the process started. */
                    failures: number;
                    /** @description Why it does not work; null when it does. */
                    problem: string | null;
                };
            };
            /** @description What reads the journal or the outbox, by name. */
            consumers: {
                [key: string]: {
                    /** @description Rows. */
                    lag: number | null;
                    /** @description Rows that it has left out since the process started, because it can never process them; the log names them. */
                    set_aside: number;
                };
            };
            /** @description The clock of the machine, as this process sees it. */
            clock: {
                /** @description False when it has jumped within the last hour. */
                ok: boolean;
                /** @description By how many milliseconds the system clock is ahead of the time that the service uses, after a jump that is not followed yet; negative when it is behind. */
                off_by_ms: number;
                /** @description Why it does not work; null when it does. */
                problem: string | null;
            };
            /** @description Stores that were found to have gone back to an earlier state since the service started. */
            set_back: {
                /** @description The name of the store. */
                store: string;
                /**
                 * Format: date-time
                 * @description When it was noticed.
                 * @example 2026-01-31T09:30:00.123Z
                 */
                noticed_at: string;
                /** @description What was lost, and what the service does about it. */
                detail: string;
            }[];
        };
        /** @description What is counted again. */
        RecountBegun: {
            /** @description All external runs, including those that keep their usage because some of their events have expired. */
            runs: number;
        };
        RecoverWebhook: {
            /**
             * Format: date-time
             * @description Deliver again what was accepted at this time or later.
             */
            since?: string;
            /** @description Deliver again what follows this cursor; 0: from the oldest retained activity. */
            after?: string;
        };
        Reject: {
            /** @description The reason; stored, and passed to the model after a rejection. */
            comment?: string | null;
            /** @description Responds with an event stream. */
            stream?: boolean;
            /** @description Responds 202 at once; the run continues in the background. */
            background?: boolean;
        };
        RenameRunView: {
            /** @description The new name. */
            name: string;
        };
        ReportTask: {
            /**
             * Format: uuid
             * @description The run that the task belongs to.
             */
            run_id: string;
            /** @description The current state of the task. */
            task: {
                /**
                 * Format: uuid
                 * @description Chosen by the caller; identifies the task in later calls.
                 */
                id: string;
                /** @description The name of the task. */
                name: string;
                status: components["schemas"]["TaskStatus"];
                /** @description The input of the task. */
                input?: {
                    [key: string]: unknown;
                };
                /** @description The output of the task. */
                output?: {
                    [key: string]: unknown;
                };
                /** @description Why it failed. */
                error_message?: string;
                /**
                 * Format: uuid
                 * @description The task of the same run that this one is part of.
                 */
                parent_task_id?: string;
                /**
                 * Format: date-time
                 * @description When it began. Default: when it was first reported as begun. Not with `pending`.
                 */
                started_at?: string;
                /**
                 * Format: date-time
                 * @description When it ended, not before it began. Default: when it was first reported as ended. Only with a final status.
                 */
                completed_at?: string;
            };
        };
        /** @description What the run used in all. Replaces the sum of its `llm.call` events, also of later ones. */
        ReportedUsage: {
            /** @description Tokens that models read. */
            input_tokens: number;
            /** @description Tokens that models wrote. */
            output_tokens: number;
            /** @description Of `input_tokens`, those read from a cache. Default 0. */
            cache_read_tokens?: number;
            /** @description Of `input_tokens`, those written to a cache. Default 0. */
            cache_write_tokens?: number;
            /** @description Of `output_tokens`, those of reasoning. Default 0. */
            reasoning_tokens?: number;
            /** @description What they cost, in US dollars. Default: the sum of the `llm.call` events. */
            cost_usd?: number;
        };
        RestoreAgent: Record<string, never>;
        /** @description Empty: send `{}`. */
        RestoreVersion: Record<string, never>;
        /** @description Empty: send `{}`. */
        RevokeKey: Record<string, never>;
        RotateKey: {
            /**
             * @description How long the old key stays valid, so that clients can switch to the new one.
             * @default 0
             */
            grace_seconds: number;
        };
        /** @description One execution of an agent. */
        Run: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The agent that ran.
             */
            agent_id: string;
            /** @description The version of the agent when the run started. */
            agent_version: number;
            status: components["schemas"]["RunStatus"];
            trigger_type: components["schemas"]["TriggerType"];
            /** @description The caller's own name for the run. */
            external_run_id: string | null;
            /**
             * Format: uuid
             * @description The run that started this one.
             */
            parent_run_id: string | null;
            /** @description The session that the run belongs to. */
            session_id: string | null;
            /** @description The caller's own name for the user. */
            external_user_id: string | null;
            /** @description Labels to find the run by. */
            tags: string[];
            /** @description Data that the caller stores with the run. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description The input of the run. */
            input: {
                [key: string]: unknown;
            };
            /** @description The output of the run; null unless it completed. */
            output: {
                [key: string]: unknown;
            } | null;
            /** @description Why the run failed, was cancelled or timed out. */
            error_message: string | null;
            /** @description Details of the failure. */
            error_detail: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: date-time
             * @description When the run was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it first ran; null while it is queued.
             * @example 2026-01-31T09:30:00.123Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @description When it ended; null until then.
             * @example 2026-01-31T09:30:00.123Z
             */
            completed_at: string | null;
            /** @description From started_at to completed_at. */
            duration_ms: number | null;
            /** @description duration_ms without waiting_ms. */
            active_ms: number | null;
            /** @description How long the run waited for people, to approve a call or to answer a question, without the wait that began at `waiting_since`. 0 for external runs. */
            waiting_ms: number;
            /**
             * Format: date-time
             * @description Since when it waits for a person; null if it does not.
             * @example 2026-01-31T09:30:00.123Z
             */
            waiting_since: string | null;
            usage: components["schemas"]["Usage"];
            /** @description Cost of all model calls, in US dollars. Trails the last accepted event by about a second, like `usage`. */
            cost_usd: number;
            /** @description Events reported so far. Trails the last accepted event by about a second. */
            event_count: number;
            /**
             * Format: date-time
             * @description When the service received the last event.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_event_at: string | null;
            /** @description What the run waits for; null if it is not waiting. */
            pending: components["schemas"]["PendingPause"] | null;
            /** @description Begins at 1, and rises with each change of the tags or the metadata, whoever makes it. Also the `ETag`. */
            version: number;
        };
        /** @description A run was created or changed. */
        RunActivity: {
            /** @description Its position: a feed that resumes after it continues with the next activity. */
            cursor: string;
            /**
             * Format: uuid
             * @description The agent that it is about.
             */
            agent_id: string;
            /**
             * Format: uuid
             * @description The run that it is about.
             */
            run_id: string;
            /**
             * Format: date-time
             * @description When the service accepted it.
             * @example 2026-01-31T09:30:00.123Z
             */
            received_at: string;
            /**
             * @description A run changed.
             * @constant
             */
            kind: "run";
            run: components["schemas"]["RunOfFeed"];
        };
        /** @description The run is over. */
        RunCompleted: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * @description The run has completed.
             * @constant
             */
            status: "completed";
            /** @description `{ text }`, or what the `output_schema` of the agent asks for. */
            output: {
                [key: string]: unknown;
            };
            /**
             * Format: uuid
             * @description The session in use; null without one.
             */
            session_id: string | null;
            usage: components["schemas"]["Usage"];
        };
        /** @description The run continues without its caller. */
        RunContinues: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            status: components["schemas"]["RunStatus"];
            /** @description There is no output. */
            output: null;
            /**
             * Format: uuid
             * @description The session in use; null without one.
             */
            session_id: string | null;
        };
        RunEnded: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description How the run ended. */
            status: components["schemas"]["RunStatus"];
            /**
             * Format: date-time
             * @description When it ended.
             * @example 2026-01-31T09:30:00.123Z
             */
            completed_at: string;
            /** @description From started_at; null for a run that never started. */
            duration_ms: number | null;
            /** @description The run had already ended in this way; this call changed nothing. */
            already: boolean;
        };
        RunErasure: {
            /**
             * Format: uuid
             * @description The erasure, for `GET /api/v1/erasures/:erasure_id`.
             */
            erasure_id: string;
            /**
             * @description `done` once no store has anything that was reported for the run, or the score.
             * @enum {string}
             */
            status: "running" | "done";
            /**
             * Format: date-time
             * @description When it was first asked for.
             * @example 2026-01-31T09:30:00.123Z
             */
            requested_at: string;
            /**
             * Format: date-time
             * @description When it was verified; null until then.
             * @example 2026-01-31T09:30:00.123Z
             */
            done_at: string | null;
            /** @description How many runs it deletes. */
            runs: number;
            /** @description How many scores it deletes, not counting those of the run. */
            scores: number;
        };
        /** @description The run ended without an output. */
        RunFailed: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /** @description `failed`, `cancelled` or `timed_out`. */
            status: components["schemas"]["RunStatus"];
            /** @description There is no output. */
            output: null;
            /**
             * Format: uuid
             * @description The session in use; null without one.
             */
            session_id: string | null;
            /** @description What went wrong. */
            error_message: string | null;
            /** @description Details; `reason` names the cause. */
            error_detail: {
                [key: string]: unknown;
            } | null;
            usage: components["schemas"]["Usage"];
        };
        /** @description A page of the list of runs, newest first. */
        RunList: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["ListedRun"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
            searched?: components["schemas"]["Searched"];
        };
        /** @description A run, without its `input` and `output`. */
        RunOfFeed: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The agent that ran.
             */
            agent_id: string;
            /** @description The version of the agent when the run started. */
            agent_version: number;
            status: components["schemas"]["RunStatus"];
            trigger_type: components["schemas"]["TriggerType"];
            /** @description The caller's own name for the run. */
            external_run_id: string | null;
            /**
             * Format: uuid
             * @description The run that started this one.
             */
            parent_run_id: string | null;
            /** @description The session that the run belongs to. */
            session_id: string | null;
            /** @description The caller's own name for the user. */
            external_user_id: string | null;
            /** @description Labels to find the run by. */
            tags: string[];
            /** @description Data that the caller stores with the run. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description Why the run failed, was cancelled or timed out. */
            error_message: string | null;
            /** @description Details of the failure. */
            error_detail: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: date-time
             * @description When the run was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it first ran; null while it is queued.
             * @example 2026-01-31T09:30:00.123Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @description When it ended; null until then.
             * @example 2026-01-31T09:30:00.123Z
             */
            completed_at: string | null;
            /** @description From started_at to completed_at. */
            duration_ms: number | null;
            /** @description duration_ms without waiting_ms. */
            active_ms: number | null;
            /** @description How long the run waited for people, to approve a call or to answer a question, without the wait that began at `waiting_since`. 0 for external runs. */
            waiting_ms: number;
            /**
             * Format: date-time
             * @description Since when it waits for a person; null if it does not.
             * @example 2026-01-31T09:30:00.123Z
             */
            waiting_since: string | null;
            usage: components["schemas"]["Usage"];
            /** @description Cost of all model calls, in US dollars. Trails the last accepted event by about a second, like `usage`. */
            cost_usd: number;
            /** @description Events reported so far. Trails the last accepted event by about a second. */
            event_count: number;
            /**
             * Format: date-time
             * @description When the service received the last event.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_event_at: string | null;
            /** @description What the run waits for; null if it is not waiting. */
            pending: components["schemas"]["PendingPause"] | null;
        };
        /** @description A page of a list, newest first. */
        RunPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["ListedRun"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        RunQuery: {
            /** @description One SELECT in ClickHouse SQL. */
            query: string;
            /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
            params?: {
                [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
            };
            /**
             * @description `json` by default. Other formats stream all rows without the envelope; `complete_through` is the header `X-Complete-Through`. A response that fails midway is incomplete: the connection is aborted.
             * @enum {string}
             */
            format?: "json" | "ndjson" | "csv" | "parquet" | "arrow";
            /** @description Delays the query until this `seq`, or this `complete_through` of an earlier answer, is readable. */
            wait_for?: number | string;
        };
        /** @description `params` override the saved values of the same names; other saved values still apply. */
        RunSavedQuery: {
            /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
            params?: {
                [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
            };
            /**
             * @description `json` by default. Other formats stream all rows without the envelope; `complete_through` is the header `X-Complete-Through`. A response that fails midway is incomplete: the connection is aborted.
             * @enum {string}
             */
            format?: "json" | "ndjson" | "csv" | "parquet" | "arrow";
            /** @description Delays the query until this `seq`, or this `complete_through` of an earlier answer, is readable. */
            wait_for?: number | string;
        };
        RunStarted: {
            /**
             * Format: uuid
             * @description The run.
             */
            run_id: string;
        };
        /**
         * @description `queued`, `running`, `awaiting_approval` and `awaiting_input` can change; `completed`, `failed`, `cancelled` and `timed_out` are final.
         * @enum {string}
         */
        RunStatus: "queued" | "running" | "awaiting_approval" | "awaiting_input" | "completed" | "failed" | "cancelled" | "timed_out";
        /** @description A view of the dashboard's list of runs, which everyone in the workspace sees. */
        RunView: {
            /** @description Unique in the workspace. */
            name: string;
            /** @description Filters, columns and order, as in `status=failed&cols=started,error`. */
            query: string;
            /** @description Begins at 1, and rises with each edit. Also the `ETag`. */
            version: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
        };
        /** @description A page of a list, newest first. */
        RunViewPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["RunView"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description The service runs hosted agents; external ones report to it. Fixed at creation; default external.
         * @enum {string}
         */
        RuntimeType: "hosted" | "external";
        /** @description A query saved in the workspace under a name. */
        SavedQuery: {
            /**
             * Format: uuid
             * @description The saved query.
             */
            query_id: string;
            /** @description Unique in the workspace. */
            name: string;
            /** @description What the query is for. */
            description: string | null;
            /** @description One SELECT in ClickHouse SQL. */
            query: string;
            /** @description Default values of placeholders; a run can override them. */
            params: {
                [key: string]: unknown;
            };
            /** @description How the result is drawn; null for a table. */
            chart: components["schemas"]["Chart"] | null;
            /** @description Begins at 1, and rises with each edit. Also the `ETag`. */
            version: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
        };
        /** @description A page of a list, newest first. */
        SavedQueryPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["SavedQuery"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /** @description The latest state of a score. */
        Score: {
            /** @description Identifies the score in its run. */
            id: string;
            /**
             * Format: uuid
             * @description The task that is scored.
             */
            task_id: string | null;
            /** @description The event that is scored. */
            event_id: string | null;
            /** @description The session that is scored. */
            session_id: string | null;
            /** @description What is scored. */
            name: string;
            /** @description A number, or true or false; null if the score has only a label or text. */
            value: (number | boolean) | null;
            /** @description A category. */
            label: string | null;
            /** @description A verdict in words. */
            text: string | null;
            /** @description The reason for the score. */
            comment: string | null;
            source: components["schemas"]["ScoreSource"];
            /** @description Data that the caller stores with the score. */
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the score was given.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: uuid
             * @description The run that is scored.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The agent of that run.
             */
            agent_id: string;
            /** @description Its position in the order of acceptance, as in the cursors of feeds. */
            seq: number;
            /**
             * Format: date-time
             * @description When the service accepted it.
             * @example 2026-01-31T09:30:00.123Z
             */
            received_at: string;
        };
        /** @description A run was scored. */
        ScoreActivity: {
            /** @description Its position: a feed that resumes after it continues with the next activity. */
            cursor: string;
            /**
             * Format: uuid
             * @description The agent that it is about.
             */
            agent_id: string;
            /**
             * Format: uuid
             * @description The run that it is about.
             */
            run_id: string;
            /**
             * Format: date-time
             * @description When the service accepted it.
             * @example 2026-01-31T09:30:00.123Z
             */
            received_at: string;
            /**
             * @description A run was scored, or a score was replaced.
             * @constant
             */
            kind: "score";
            score: components["schemas"]["ScoreOfFeed"];
        };
        /** @description A score of a run. */
        ScoreOfFeed: {
            /** @description Identifies the score in its run. */
            id: string;
            /**
             * Format: uuid
             * @description The task that is scored.
             */
            task_id: string | null;
            /** @description The event that is scored. */
            event_id: string | null;
            /** @description The session that is scored. */
            session_id: string | null;
            /** @description What is scored. */
            name: string;
            /** @description A number, or true or false; null if the score has only a label or text. */
            value: (number | boolean) | null;
            /** @description A category. */
            label: string | null;
            /** @description A verdict in words. */
            text: string | null;
            /** @description The reason for the score. */
            comment: string | null;
            source: components["schemas"]["ScoreSource"];
            /** @description Data that the caller stores with the score. */
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the score was given.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
        };
        /** @description A page of a list, newest first. */
        ScorePage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Score"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description Who or what gave the score.
         * @enum {string}
         */
        ScoreSource: "api" | "person" | "judge" | "import";
        ScoresAccepted: {
            /** @description Scores that were stored. */
            accepted: number;
            /** @description Scores that their run already had, with the same id and content; they were not stored again. */
            duplicates: number;
            /** @description Position of the first score stored; null when none was. */
            first_seq: number | null;
            /** @description Position of the last score stored; null when none was. */
            last_seq: number | null;
            /** @description With ?partial=true: the scores that were not stored. */
            rejected?: {
                /** @description Index of the score in the request, from 0. */
                index: number;
                /** @description What is wrong with it. */
                message: string;
            }[];
        };
        /** @description Where a run has what was searched. */
        SearchMatch: {
            /**
             * @description The field of the run, of the event, or of the task.
             * @enum {string}
             */
            field: "run_id" | "external_run_id" | "session_id" | "external_user_id" | "agent_name" | "tags" | "error_message" | "error_detail" | "input" | "output" | "metadata" | "event.id" | "event.payload" | "task.id" | "task.name" | "task.input" | "task.output" | "task.error_message";
            /** @description The text around the place, in pieces. */
            snippet: {
                /** @description A piece of the text. */
                text: string;
                /**
                 * @description This piece is what was searched.
                 * @constant
                 */
                match?: true;
            }[];
            /** @description The event. */
            event_id?: string;
            /** @description The `seq` of the event. */
            event_seq?: number;
            /** @description The type of the event. */
            event_type?: string;
            /**
             * Format: uuid
             * @description The task, or the task of the event.
             */
            task_id?: string;
        };
        /** @description How far a search with `q` got. */
        Searched: {
            /**
             * Format: date-time
             * @description Null if all runs were searched. Otherwise time ran out: only runs created at this moment or later were searched, and `next_cursor` continues with the others.
             * @example 2026-01-31T09:30:00.123Z
             */
            runs_since: string | null;
        };
        /** @description A secret, without its value. */
        Secret: {
            /** @description The NAME in `{{secret:NAME}}`. */
            name: string;
            /** @description Begins at 1, and rises with each edit. Also the `ETag`. */
            version: number;
            /**
             * Format: date-time
             * @description When it was first set.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last set.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
        };
        /** @description A page of a list, newest first. */
        SecretPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Secret"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /** @description A conversation over several runs. */
        Session: {
            /** @description The session: a UUID if it is hosted, or else the name that its runs give it. */
            session_id: string;
            kind: components["schemas"]["SessionKind"];
            /**
             * Format: uuid
             * @description The agent of the session; of an external one, that of its newest run.
             */
            agent_id: string;
            /** @description The caller's own name for the user; of an external session, that of the newest run that names one. */
            external_user_id: string | null;
            /** @description Messages that a hosted session remembers so far; 0 of an external one. */
            message_count: number;
            /**
             * Format: uuid
             * @description The run that may continue a hosted session now; others wait. Null of an external one.
             */
            active_run_id: string | null;
            /** @description The status of the newest run. */
            status: components["schemas"]["RunStatus"];
            /** @description Its runs; only the newest 2,000 are counted, in a list 200. */
            run_count: number;
            /** @description Whether it has more runs than are counted. */
            is_partial: boolean;
            /** @description Those that have failed or timed out. */
            failed_count: number;
            /** @description Those that wait for a person. */
            waiting_count: number;
            /** @description Tokens of these runs. */
            usage: components["schemas"]["Usage"];
            /** @description Cost of these runs, in US dollars. */
            cost_usd: number;
            /** @description Agents of these runs, ten at most. */
            agent_ids: string[];
            /** @description Users that these runs name, ten at most. */
            external_user_ids: string[];
            /** @description The input of the first run, shortened; null if it is empty, or an agent key reads a session that very many runs of other agents begin. */
            first_message: string | null;
            /** @description The output of the newest run, or else why it failed or its input, shortened. */
            last_message: string | null;
            /**
             * Format: uuid
             * @description The newest run.
             */
            last_run_id: string;
            /**
             * Format: date-time
             * @description When the session started.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the session last changed.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description When one of these runs last began, reported an event, or ended.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_activity_at: string;
        };
        /**
         * @description `hosted`: the service itself runs the session. `external`: runs of agents elsewhere name it.
         * @enum {string}
         */
        SessionKind: "hosted" | "external";
        /** @description A page of a list, newest activity first. */
        SessionPage: {
            /** @description The items of this page, newest activity first. */
            items: components["schemas"]["Session"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /** @description A browser in which a person is signed in. */
        SignIn: {
            /**
             * Format: uuid
             * @description The sign-in.
             */
            sign_in_id: string;
            /**
             * Format: date-time
             * @description When it began.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last used, up to some seconds late.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_used_at: string;
            /**
             * Format: date-time
             * @description When it ends at the latest.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string;
        };
        /** @description A sign-in that has ended. */
        SignInEnded: {
            /**
             * Format: uuid
             * @description The sign-in that has ended.
             */
            sign_in_id: string;
        };
        /** @description How people sign in to the page, and who has. */
        SignInState: {
            /** @description Whether people can sign in by OpenID Connect, at `/auth/sign-in`. */
            openid: boolean;
            /** @description Whether the page takes a workspace key. */
            keys: boolean;
            /** @description The person who is signed in. */
            person: components["schemas"]["SignedIn"] | null;
        };
        /** @description The person who is signed in. */
        SignedIn: {
            /**
             * Format: uuid
             * @description The person.
             */
            person_id: string;
            /**
             * Format: uuid
             * @description The sign-in of this browser.
             */
            sign_in_id: string;
            /** @description Their name. */
            name: string | null;
            /** @description Their e-mail address. */
            email: string | null;
            role: components["schemas"]["PersonRole"];
            workspace: components["schemas"]["WorkspaceName"];
            /** @description All workspaces that the person may enter, this one included. */
            workspaces: components["schemas"]["WorkspaceName"][];
            /**
             * Format: date-time
             * @description When the sign-in ends at the latest.
             * @example 2026-01-31T09:30:00.123Z
             */
            expires_at: string;
        };
        /** @description A value of a placeholder. */
        SqlScalar: string | number | boolean | null;
        StartRun: {
            /**
             * Format: uuid
             * @description The agent of the run, which must be the agent of the key.
             */
            agent_id: string;
            /**
             * @description What started the run.
             * @default sdk
             * @enum {string}
             */
            trigger_type: "manual" | "scheduled" | "webhook" | "sdk";
            /** @description The input of the run. Default `{}`. */
            input?: {
                [key: string]: unknown;
            };
            /** @description The caller's own name for the run. */
            external_run_id?: string;
            /**
             * Format: uuid
             * @description The run of the same workspace that started this one.
             */
            parent_run_id?: string;
            /** @description The caller's own name for the conversation that the run belongs to. The id of a session that the service itself runs is a CONFLICT. */
            session_id?: string;
            /** @description The caller's own name for the user. */
            external_user_id?: string;
            /** @description Labels to find the run by. */
            tags?: string[];
            /** @description Any other data to store with the run. Default `{}`. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: uuid
             * @description Chosen by the caller, so that a start can be repeated safely: a repeat with the same body returns the same run, another body is a CONFLICT. Free-form fields are compared byte for byte.
             */
            run_id?: string;
        };
        /**
         * @description A paused agent cannot be invoked; it may still report. An archived one can do neither, until it is restored.
         * @enum {string}
         */
        StoredAgentStatus: "active" | "paused" | "archived";
        /** @description Requested activity is missing. */
        StreamGap: {
            /** @description The requested cursor. */
            after: string;
            /** @description The cursor that the feed continues from; activity in between is missing. */
            resumed_at: string;
        };
        /** @description A step of a run. */
        Task: {
            /**
             * Format: uuid
             * @description The id that the caller chose.
             */
            id: string;
            /**
             * Format: uuid
             * @description The run that it belongs to.
             */
            run_id: string;
            /**
             * Format: uuid
             * @description The agent of that run.
             */
            agent_id: string;
            /**
             * Format: uuid
             * @description The task that it is part of.
             */
            parent_task_id: string | null;
            /** @description The name of the task. */
            name: string;
            status: components["schemas"]["TaskStatus"];
            /** @description The input of the task. */
            input: {
                [key: string]: unknown;
            } | null;
            /** @description The output of the task. */
            output: {
                [key: string]: unknown;
            } | null;
            /** @description Why it failed. */
            error_message: string | null;
            /**
             * Format: date-time
             * @description When it was first reported.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last changed.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description When it began; null while it has not, or if it was skipped before.
             * @example 2026-01-31T09:30:00.123Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @description When it ended; null while it has not.
             * @example 2026-01-31T09:30:00.123Z
             */
            completed_at: string | null;
        };
        /** @description A task was created or changed. */
        TaskActivity: {
            /** @description Its position: a feed that resumes after it continues with the next activity. */
            cursor: string;
            /**
             * Format: uuid
             * @description The agent that it is about.
             */
            agent_id: string;
            /**
             * Format: uuid
             * @description The run that it is about.
             */
            run_id: string;
            /**
             * Format: date-time
             * @description When the service accepted it.
             * @example 2026-01-31T09:30:00.123Z
             */
            received_at: string;
            /**
             * @description A task changed.
             * @constant
             */
            kind: "task";
            task: components["schemas"]["Task"];
        };
        /** @description A page of a list, newest first. */
        TaskPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Task"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        TaskReported: {
            /**
             * Format: uuid
             * @description The task.
             */
            task_id: string;
            /** @description The status after the call. */
            status: components["schemas"]["TaskStatus"];
            /** @description This call reported the task for the first time. */
            created: boolean;
            /** @description False if the transition is not legal (backwards, or out of a final status): nothing changed. */
            applied: boolean;
        };
        /**
         * @description `completed`, `failed` and `skipped` are final.
         * @enum {string}
         */
        TaskStatus: "pending" | "running" | "completed" | "failed" | "skipped";
        TestAlert: {
            /**
             * Format: date-time
             * @description The first evaluation is at or after this time.
             */
            from: string;
            /**
             * Format: date-time
             * @description The last evaluation is at or before this time, which must be past.
             */
            to: string;
            /** @description Time between two evaluations; `every` by default. */
            step?: string;
        };
        TestAlertDefinition: {
            /** @description Unique in the workspace. */
            name: string;
            /**
             * Format: uuid
             * @description A saved query; instead of `query`.
             */
            query_id?: string;
            /** @description One SELECT in ClickHouse SQL; instead of `query_id`. */
            query?: string;
            /** @description Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings. */
            params?: {
                [key: string]: components["schemas"]["SqlScalar"] | components["schemas"]["SqlScalar"][];
            };
            /** @description Time between two evaluations, `1m` to `1d`. */
            every: string;
            /** @description Sets the placeholders `{from:DateTime64(3)}` and `{to:DateTime64(3)}` of the query: `to` is the time of the evaluation, `from` is this long before it. */
            window?: string | null;
            /** @description Columns whose values identify a series. Each series has its own state. None: one series. */
            by?: string[];
            /** @description When a series fires: a comparison, or `any_row` (the result has a row of the series). */
            condition: {
                /** @description A numeric column of the result. */
                column: string;
                /**
                 * @description How the column is compared with `value`.
                 * @enum {string}
                 */
                op: ">" | ">=" | "<" | "<=" | "=" | "!=";
                /** @description The condition holds when the comparison does. */
                value: number;
                /** @description A firing series keeps firing until the comparison with this value fails, too, so that a value near the threshold does not fire repeatedly. Not with `=` and `!=`. */
                recover_value?: number;
            } | "any_row";
            /** @description How long the condition must hold before a series fires. */
            for?: string | null;
            /** @description How long the condition must not hold before a firing series is ok. */
            keep_firing_for?: string | null;
            /**
             * @description What a series without a row means: `ok` (default) counts as ok, `last` keeps its state, `alert` alerts, `zero` is the value 0. Without effect for `any_row`: there, the condition does not hold.
             * @enum {string}
             */
            no_data?: "ok" | "last" | "alert" | "zero";
            /**
             * @description What a failing query means: `last` (default) keeps all states, `alert` alerts.
             * @enum {string}
             */
            on_error?: "last" | "alert";
            /** @description Repeats `alert.fired` at this interval for a series that still alerts. */
            renotify?: string | null;
            /** @description The webhooks that get `alert.fired` and `alert.resolved`. */
            notify?: string[];
            /** @description Whether it is evaluated; true by default. */
            enabled?: boolean;
            /**
             * Format: date-time
             * @description The first evaluation is at or after this time.
             */
            from: string;
            /**
             * Format: date-time
             * @description The last evaluation is at or before this time, which must be past.
             */
            to: string;
            /** @description Time between two evaluations; `every` by default. */
            step?: string;
        };
        /**
         * @description What started the run.
         * @enum {string}
         */
        TriggerType: "manual" | "scheduled" | "webhook" | "sdk";
        /** @description Token usage of the model calls of the run. */
        Usage: {
            /** @description Input tokens of all model calls, with those read from or written to a cache. */
            input_tokens: number;
            /** @description Output tokens of all model calls, with those of reasoning. */
            output_tokens: number;
            /** @description The sum of both. */
            total_tokens: number;
            /** @description Of the input tokens, those that providers read from their caches. */
            cache_read_tokens: number;
            /** @description Of the input tokens, those that providers wrote to their caches. */
            cache_write_tokens: number;
            /** @description Of the output tokens, those of reasoning. */
            reasoning_tokens: number;
        };
        /** @description A user of agents, as runs name it in `external_user_id`. */
        User: {
            /** @description The caller's own name for the user. */
            external_user_id: string;
            /** @description Its runs; at most 10,000 are counted, the newest. */
            run_count: number;
            /** @description Whether it has more runs than are counted. */
            is_partial: boolean;
            /** @description Sessions of these runs. */
            session_count: number;
            /** @description Those that have failed or timed out. */
            failed_count: number;
            /** @description Those that wait for a person. */
            waiting_count: number;
            /** @description Tokens of these runs. */
            usage: components["schemas"]["Usage"];
            /** @description Cost of these runs, in US dollars. */
            cost_usd: number;
            /** @description Agents of these runs, ten at most. */
            agent_ids: string[];
            /** @description The share of failed runs, those that timed out included, among those that completed or failed; null if none has. */
            failure_rate: number | null;
            /**
             * Format: date-time
             * @description When the first run of all began.
             * @example 2026-01-31T09:30:00.123Z
             */
            first_seen_at: string;
            /**
             * Format: date-time
             * @description When one of these runs last began, reported an event, or ended.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_seen_at: string;
        };
        /** @description An endpoint that activity is sent to, without its secret. */
        Webhook: {
            /**
             * Format: uuid
             * @description The endpoint.
             */
            webhook_id: string;
            /** @description Where messages are sent, as it is called; for people who are no admins only its origin. */
            url: string;
            /** @description What receives the messages. */
            description: string | null;
            /** @description Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes that kind. */
            filter: components["schemas"]["LiveFilter"] | null;
            format: components["schemas"]["WebhookFormat"];
            signing: components["schemas"]["WebhookSigning"];
            order: components["schemas"]["WebhookOrder"];
            /**
             * @description `behind`: so many deliveries are pending that the endpoint stops at its position until some succeed or are given up.
             * @enum {string}
             */
            status: "active" | "behind" | "disabled";
            /** @description Why the service has disabled the endpoint; null if it has not. */
            disabled_reason: string | null;
            /** @description Verifies signatures of `v1a`: `whpk_…`; null for `v1`. */
            public_key: string | null;
            /** @description Begins at 1, and rises with each edit. Also the `ETag`. */
            version: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
            health: components["schemas"]["WebhookHealth"];
        };
        /** @description A message to an endpoint, as of its latest attempt. */
        WebhookDelivery: {
            /** @description The `webhook-id` of every attempt. */
            delivery_id: string;
            /**
             * Format: uuid
             * @description The endpoint.
             */
            webhook_id: string;
            /** @description The type of the message. */
            type: string;
            /**
             * Format: uuid
             * @description The run that the message is about; null for alerts and tests.
             */
            run_id: string | null;
            /** @description The position of the activity; 0 for tests. */
            seq: number;
            /** @description The number of the latest attempt; 0 while it waits for an earlier delivery of its run. */
            attempt: number;
            status: components["schemas"]["WebhookDeliveryStatus"];
            /** @description HTTP status of the answer; null if there was none. */
            http_status: number | null;
            /** @description Duration of the latest attempt, if known. */
            duration_ms: number | null;
            /** @description The start of the answer, or why there was none. */
            response: string | null;
            /**
             * Format: date-time
             * @description When the latest attempt was made.
             * @example 2026-01-31T09:30:00.123Z
             */
            at: string | null;
            /**
             * Format: date-time
             * @description When the next attempt is made, if one follows and its time is known.
             * @example 2026-01-31T09:30:00.123Z
             */
            next_at: string | null;
        };
        /** @description A page of a list, newest first. */
        WebhookDeliveryPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["WebhookDelivery"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description `pending`: another attempt follows, or it waits for an earlier one of its run; `failed`: given up.
         * @enum {string}
         */
        WebhookDeliveryStatus: "pending" | "succeeded" | "failed";
        /**
         * @description The body: JSON of Standard Webhooks, or a message for a Slack incoming webhook.
         * @enum {string}
         */
        WebhookFormat: "standard" | "slack";
        /** @description How far an endpoint has got, and whether it answers. */
        WebhookHealth: {
            /** @description The cursor up to which everything has been delivered or given up, or is `pending`. */
            position: string;
            /** @description Positions from there to the end of the log; null while the log cannot be read. */
            lag: number | null;
            /** @description Deliveries that wait for another attempt, or for an earlier one of their run. */
            pending: number;
            /**
             * Format: date-time
             * @description Since when every attempt has failed; null while they succeed.
             * @example 2026-01-31T09:30:00.123Z
             */
            failing_since: string | null;
            /**
             * Format: date-time
             * @description The last attempt that succeeded.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_succeeded_at: string | null;
            /**
             * Format: date-time
             * @description The last attempt that failed.
             * @example 2026-01-31T09:30:00.123Z
             */
            last_failed_at: string | null;
            /** @description The cursor at which the current recovery ends; null while there is none. */
            recovering_until: string | null;
        };
        /** @description Messages for a receiver without a public address. */
        WebhookMessages: {
            /** @description The bodies of the messages, as they are sent, oldest first. */
            data: {
                [key: string]: unknown;
            }[];
            /** @description The `iterator` of the next call. */
            iterator: string;
            /** @description Whether the end of the log was reached. */
            done: boolean;
            /** @description Whether activity before these messages is no longer available. */
            gap: boolean;
        };
        /**
         * @description `run`: in order within each run; only that run waits for a retry. `strict`: one at a time, in order; all others wait until it succeeds.
         * @enum {string}
         */
        WebhookOrder: "run" | "strict";
        /** @description A page of a list, newest first. */
        WebhookPage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Webhook"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description `v1`: HMAC-SHA256 with a shared secret; `v1a`: ed25519 with a public key.
         * @enum {string}
         */
        WebhookSigning: "v1" | "v1a";
        /** @description A tenant. */
        Workspace: {
            /**
             * Format: uuid
             * @description The workspace.
             */
            workspace_id: string;
            /** @description The display name of the workspace. */
            name: string;
            status: components["schemas"]["WorkspaceStatus"];
            /** @description Days that events are kept; null: as EVENT_RETENTION_DAYS says. The shorter of the two applies. */
            retention_days: number | null;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T09:30:00.123Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last edited.
             * @example 2026-01-31T09:30:00.123Z
             */
            updated_at: string;
        };
        /** @description A workspace that a person may enter. */
        WorkspaceName: {
            /**
             * Format: uuid
             * @description The workspace.
             */
            workspace_id: string;
            /** @description Its name. */
            name: string;
        };
        /** @description A page of a list, newest first. */
        WorkspacePage: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["Workspace"][];
            /** @description `cursor` of the next page; null at the end of the list. */
            next_cursor: string | null;
        };
        /**
         * @description Calls with keys of a suspended workspace get FORBIDDEN.
         * @enum {string}
         */
        WorkspaceStatus: "active" | "suspended";
    };
    responses: {
        /** @description The request is malformed; the message names the place. */
        VALIDATION_ERROR: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "VALIDATION_ERROR",
                 *         "message": "The request is malformed; the message names the place."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The key is missing, invalid or revoked. */
        UNAUTHENTICATED: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "UNAUTHENTICATED",
                 *         "message": "The key is missing, invalid or revoked."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The key has the wrong type or scope, or its workspace is suspended. */
        FORBIDDEN: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "FORBIDDEN",
                 *         "message": "The key has the wrong type or scope, or its workspace is suspended."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Resource not found in this key's workspace. */
        NOT_FOUND: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "NOT_FOUND",
                 *         "message": "Resource not found in this key's workspace."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The path does not support this method; `Allow` lists those that it does. */
        METHOD_NOT_ALLOWED: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "METHOD_NOT_ALLOWED",
                 *         "message": "The path does not support this method; `Allow` lists those that it does."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The state of the resource or the Idempotency-Key does not allow this call. */
        CONFLICT: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "CONFLICT",
                 *         "message": "The state of the resource or the Idempotency-Key does not allow this call."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body exceeds the limit that `GET /api/v1/limits` gives. */
        PAYLOAD_TOO_LARGE: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "PAYLOAD_TOO_LARGE",
                 *         "message": "The body exceeds the limit that `GET /api/v1/limits` gives."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many requests; `Retry-After` says when to try again. */
        RATE_LIMITED: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "RATE_LIMITED",
                 *         "message": "Too many requests; `Retry-After` says when to try again."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The service failed; the message contains the request id. */
        INTERNAL: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "INTERNAL",
                 *         "message": "The service failed; the message contains the request id."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The service cannot do this at the moment; `Retry-After` says when to try again. */
        UNAVAILABLE: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "data": null,
                 *       "error": {
                 *         "code": "UNAVAILABLE",
                 *         "message": "The service cannot do this at the moment; `Retry-After` says when to try again."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The caller's request id, if it sent one, else a ULID. */
        "X-Request-Id": string;
        /** @description The remaining budgets of the key (IETF draft). */
        RateLimit: string;
        /** @description The budgets of the key (IETF draft). */
        "RateLimit-Policy": string;
        /** @description `true` when this is the stored answer of an earlier call with the same Idempotency-Key. */
        "Idempotent-Replayed": "true";
        /** @description The version of what was answered, for `If-Match`. */
        ETag: string;
        /** @description Seconds to wait before a retry. */
        "Retry-After": number;
        /** @description `Bearer` */
        "WWW-Authenticate": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    appendEvents: {
        parameters: {
            query?: {
                /** @description Store the valid events and list the invalid ones. */
                partial?: "true" | "false";
            };
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AppendEvents"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["EventsAccepted"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    startRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StartRun"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunStarted"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    completeRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompleteRun"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunEnded"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    failRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FailRun"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunEnded"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listRuns: {
        parameters: {
            query?: {
                /** @description Runs in which all of these words and phrases were said: `refund "order 4711"`. Each run says where, in `match`. */
                q?: string;
                /** @description Runs of any of these statuses: repeated, or separated by commas, as in `failed,timed_out`. */
                status?: components["schemas"]["RunStatus"][];
                /** @description Runs of this agent. */
                agent_id?: string;
                /** @description Runs of this version of their agent. */
                agent_version?: number;
                /** @description Runs with this trigger. */
                trigger_type?: components["schemas"]["TriggerType"];
                /** @description Runs with this external_run_id. */
                external_run_id?: string;
                /** @description Runs that this run started. */
                parent_run_id?: string;
                /** @description Runs of this session. */
                session_id?: string;
                /** @description Runs of this user. */
                external_user_id?: string;
                /** @description Runs that have this tag. */
                tag?: string;
                /** @description Runs created at this moment or later. */
                from?: string;
                /** @description Runs created before this moment. */
                to?: string;
                /** @description Content that the runs of the list have: `input`, `output`, or both. Without it they have previews only. */
                include?: ("input" | "output")[];
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the list of runs, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunList"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One execution of an agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Run"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunErasure"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditRun"];
            };
        };
        responses: {
            /** @description One execution of an agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Run"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description A type, or the start of one followed by `*`. */
                type?: string;
                /** @description This level or a higher one. */
                level?: components["schemas"]["EventLevel"];
                /** @description Only events after this `seq`. */
                after_seq?: number;
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["EventPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    readConversation: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ConversationPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listChildren: {
        parameters: {
            query?: {
                /** @description Content that the runs of the list have: `input`, `output`, or both. Without it they have previews only. */
                include?: ("input" | "output")[];
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    cancelRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CancelRun"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunEnded"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    setView: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The view. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutRunView"];
            };
        };
        responses: {
            /** @description A view of the dashboard's list of runs, which everyone in the workspace sees. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunView"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteView: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The view. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["DeletedRunView"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    renameView: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The view. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenameRunView"];
            };
        };
        responses: {
            /** @description A view of the dashboard's list of runs, which everyone in the workspace sees. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunView"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listViews: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunViewPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    reportTask: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReportTask"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["TaskReported"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listTasks: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["TaskPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    addScores: {
        parameters: {
            query?: {
                /** @description Store the valid scores and list the others. */
                partial?: "true" | "false";
            };
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AddScores"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ScoresAccepted"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listScores: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ScorePage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    addRunScore: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewRunScore"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ScoresAccepted"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listAgents: {
        parameters: {
            query?: {
                /** @description A paused agent cannot be invoked; it may still report. An archived one can do neither, until it is restored. */
                status?: components["schemas"]["StoredAgentStatus"];
                /** @description The service runs hosted agents; external ones report to it. Fixed at creation; default external. */
                runtime_type?: components["schemas"]["RuntimeType"];
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["AgentPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAgent"];
            };
        };
        responses: {
            /** @description An agent. Fields that its runtime type does not have are null. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Agent"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getAgent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The agent. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An agent. Fields that its runtime type does not have are null. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Agent"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    archiveAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The agent. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ArchivedAgent"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The agent. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditAgent"];
            };
        };
        responses: {
            /** @description An agent. Fields that its runtime type does not have are null. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Agent"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    restoreAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The agent. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreAgent"];
            };
        };
        responses: {
            /** @description An agent. Fields that its runtime type does not have are null. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Agent"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listAgentVersions: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The agent. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["AgentVersionPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getAgentVersion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The agent. */
                agent_id: string;
                /** @description The number of the version. */
                version: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A version of an agent, with its configuration. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["AgentVersion"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    restoreAgentVersion: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The agent. */
                agent_id: string;
                /** @description The number of the version. */
                version: number;
            };
            cookie?: never;
        };
        /** @description Empty: send `{}`. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreVersion"];
            };
        };
        responses: {
            /** @description An agent. Fields that its runtime type does not have are null. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Agent"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description Sessions of this kind. */
                kind?: components["schemas"]["SessionKind"];
                /** @description Sessions with a run of this agent. */
                agent_id?: string;
                /** @description Sessions with a run of this user. */
                external_user_id?: string;
                /** @description Sessions with a run created at this moment or later. */
                from?: string;
                /** @description Sessions with a run created before this moment. */
                to?: string;
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest activity first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SessionPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A conversation over several runs. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Session"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["DeletedSession"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user. */
                external_user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A user of agents, as runs name it in `external_user_id`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["User"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    exportTraces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Stored, apart from what partial_success says. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The export response. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-protobuf": string;
                };
            };
            /** @description A google.rpc.Status, without the envelope. */
            default: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description code and message. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-protobuf": string;
                };
            };
        };
    };
    exportLogs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Stored, apart from what partial_success says. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The export response. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-protobuf": string;
                };
            };
            /** @description A google.rpc.Status, without the envelope. */
            default: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description code and message. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-protobuf": string;
                };
            };
        };
    };
    exportMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Stored, apart from what partial_success says. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The export response. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-protobuf": string;
                };
            };
            /** @description A google.rpc.Status, without the envelope. */
            default: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description code and message. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-protobuf": string;
                };
            };
        };
    };
    ingestOpenAiTraces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    data: Record<string, never>[];
                };
            };
        };
        responses: {
            /** @description Everything is on stable storage. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description An error in the shape of OpenAI's API, without the envelope. */
            default: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description error. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
        };
    };
    ingestLangfuseBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The result of every event: successes and errors. */
            207: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description successes and errors. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            /** @description An error, without the envelope. */
            default: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description message and error. */
                        data: Record<string, never>;
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description Keys of this type. */
                type?: components["schemas"]["KeyType"];
                /** @description Keys of this agent. */
                agent_id?: string;
                /** @description Keys with this status; by default all that are not revoked. */
                status?: components["schemas"]["KeyStatus"];
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["KeyPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createWorkspaceKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateKey"];
            };
        };
        responses: {
            /** @description A new key, with its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewKey"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createAgentKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The agent. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAgentKey"];
            };
        };
        responses: {
            /** @description A new key, with its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewKey"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The id of the key. */
                key_id: string;
            };
            cookie?: never;
        };
        /** @description Empty: send `{}`. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RevokeKey"];
            };
        };
        responses: {
            /** @description A key, without its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Key"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    rotateKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The id of the key. */
                key_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RotateKey"];
            };
        };
        responses: {
            /** @description A new key, with its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewKey"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listPeople: {
        parameters: {
            query?: {
                /** @description Only people with this status. */
                status?: components["schemas"]["PersonStatus"];
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["PersonPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getPerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The person. */
                person_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Someone who has signed in, and where. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["PersonDetail"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editPerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The person. */
                person_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditPerson"];
            };
        };
        responses: {
            /** @description Someone who has signed in. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Person"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    revokeSignIn: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The sign-in. */
                sign_in_id: string;
            };
            cookie?: never;
        };
        /** @description Empty: send `{}`. */
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description A sign-in that has ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SignInEnded"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How people sign in to the page, and who has. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SignInState"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            500: components["responses"]["INTERNAL"];
        };
    };
    signOut: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        /** @description Empty: send `{}`. */
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description A sign-in that has ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SignInEnded"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    changeWorkspace: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeWorkspace"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ChangeWorkspace"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    setSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description at most 64 capital letters, digits and "_", a letter first */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutSecret"];
            };
        };
        responses: {
            /** @description A secret, without its value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Secret"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description at most 64 capital letters, digits and "_", a letter first */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["DeletedSecret"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listSecrets: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SecretPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listWorkspaces: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["WorkspacePage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createWorkspace: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWorkspace"];
            };
        };
        responses: {
            /** @description A workspace just created, with its first key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewWorkspace"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createOwnerKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The workspace. */
                workspace_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAgentKey"];
            };
        };
        responses: {
            /** @description A new key, with its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewKey"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    eraseWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The workspace. */
                workspace_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ErasedWorkspace"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The workspace. */
                workspace_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditWorkspace"];
            };
        };
        responses: {
            /** @description A tenant. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Workspace"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace of the key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["OwnWorkspace"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    recountUsage: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is counted again. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RecountBegun"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createFeedToken: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateFeedToken"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["FeedToken"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    streamActivity: {
        parameters: {
            query?: {
                /** @description Activity of this agent. Repeatable; matches any of the values. */
                agent_id?: string[];
                /** @description Activity of this run. Repeatable; matches any of the values. */
                run_id?: string[];
                /** @description Events, scores and tasks only: of this task. Repeatable; matches any of the values. */
                task_id?: string[];
                /** @description Activity of runs of this session. Repeatable; matches any of the values. */
                session_id?: string[];
                /** @description Activity of runs of this user, by your own name. Repeatable; matches any of the values. */
                external_user_id?: string[];
                /** @description Activity of this kind. Repeatable; matches any of the values. */
                kind?: components["schemas"]["ActivityKind"][];
                /** @description Events only. A trailing `*` matches a prefix. Repeatable. */
                type?: string[];
                /** @description Events only: this level or higher. */
                level?: components["schemas"]["EventLevel"];
                /** @description Runs and tasks only. Repeatable, or separated by commas. */
                status?: string[];
                /** @description Runs only. Repeatable; matches any of the tags. */
                tag?: string[];
                /** @description Resume after this cursor; 0: from the oldest retained activity. A `Last-Event-ID` header takes precedence. Without either, the stream starts with new activity. */
                after?: string;
                /** @description A feed token, for browsers; replaces the Authorization header. */
                token?: string;
            };
            header?: {
                /** @description The `id` of the last frame received: the stream continues after it. Takes precedence over `after`. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Frames with `id` (a cursor), `event` and `data`, until the client disconnects; a comment at least every 10 s. `x-event-stream` has the schema of the data of each event. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    streamRun: {
        parameters: {
            query?: {
                /** @description Resume after this cursor; 0: from the oldest retained activity. A `Last-Event-ID` header takes precedence. Without either, the stream starts with new activity. */
                after?: string;
                /** @description A feed token, for browsers; replaces the Authorization header. */
                token?: string;
            };
            header?: {
                /** @description The `id` of the last frame received: the stream continues after it. Takes precedence over `after`. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Frames with `id` (a cursor), `event` and `data`, until the client disconnects; a comment at least every 10 s. `x-event-stream` has the schema of the data of each event. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description The run has ended and the client has received all of it. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    openLive: {
        parameters: {
            query?: {
                /** @description A feed token, for browsers; replaces the Authorization header. */
                token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection is a WebSocket now. */
            101: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["WebhookPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWebhook"];
            };
        };
        responses: {
            /** @description An endpoint with its new secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewWebhook"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An endpoint that activity is sent to, without its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Webhook"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["DeletedWebhook"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditWebhook"];
            };
        };
        responses: {
            /** @description An endpoint that activity is sent to, without its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Webhook"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An endpoint with its new secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewWebhook"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listWebhookDeliveries: {
        parameters: {
            query?: {
                /** @description `pending`: another attempt follows, or it waits for an earlier one of its run; `failed`: given up. */
                status?: components["schemas"]["WebhookDeliveryStatus"];
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["WebhookDeliveryPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    recoverWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecoverWebhook"];
            };
        };
        responses: {
            /** @description An endpoint that activity is sent to, without its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Webhook"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    pollWebhook: {
        parameters: {
            query?: {
                /** @description `iterator` of the previous answer, or any cursor; 0: from the oldest retained activity. Default: the end of the log when the endpoint was created. */
                iterator?: string;
                /** @description Maximum of messages; default 100. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Messages for a receiver without a public address. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["WebhookMessages"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["WebhookDelivery"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    resendWebhookDelivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The endpoint. */
                webhook_id: string;
                /** @description The `webhook-id` of the delivery. */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["WebhookDelivery"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    invokeAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The agent. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvokeAgent"];
            };
        };
        responses: {
            /** @description The run is over. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run is over. */
                        data: components["schemas"]["RunCompleted"] | components["schemas"]["RunFailed"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "text/event-stream": string;
                };
            };
            /** @description The run waits for a person, or continues in the background. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run waits for a person, or continues in the background. */
                        data: components["schemas"]["AwaitingApproval"] | components["schemas"]["AwaitingInput"] | components["schemas"]["RunContinues"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    streamRunOutput: {
        parameters: {
            query?: {
                /** @description The `id` of the last frame received. */
                after?: string;
                /** @description A feed token, for browsers; instead of the Authorization header. */
                token?: string;
            };
            header?: {
                /** @description The `id` of the last frame received: the stream continues after it. Takes precedence over `after`. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description The run. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Frames with `id`, `event` and `data`; `x-event-stream` has the schema of the data of each event. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listPauses: {
        parameters: {
            query?: {
                /** @description `pending`: those that wait (the default). `decided`: those that were decided, expired or were cancelled, by the time of that. */
                state?: "pending" | "decided";
                /** @description Which come first; default newest. */
                order?: "newest" | "oldest";
                /** @description Only those with one of these statuses. */
                status?: components["schemas"]["PauseStatus"][];
                /** @description Only approvals, or only input requests. */
                type?: components["schemas"]["PauseType"];
                /** @description Only those of this agent. */
                agent_id?: string;
                /** @description Only those of this session. */
                session_id?: string;
                /** @description Only those of this user. */
                external_user_id?: string;
                /** @description Only calls of this tool. */
                tool?: string;
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first unless `order` is `oldest`; with a filter, a page may be shorter than `limit`, even empty, while `next_cursor` is not null. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["PauseSummaryPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listApprovals: {
        parameters: {
            query?: {
                /** @description Only those with this status. */
                status?: components["schemas"]["ApprovalStatus"];
                /** @description Only those that this run waits for. */
                run_id?: string;
                /** @description Only those of this agent. */
                agent_id?: string;
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ApprovalPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getApproval: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The approval. */
                approval_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ApprovalDetails"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    approveCall: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The approval. */
                approval_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Approve"];
            };
        };
        responses: {
            /** @description The run is over. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run is over. */
                        data: components["schemas"]["RunCompleted"] | components["schemas"]["RunFailed"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "text/event-stream": string;
                };
            };
            /** @description The run waits for a person, or continues in the background. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run waits for a person, or continues in the background. */
                        data: components["schemas"]["AwaitingApproval"] | components["schemas"]["AwaitingInput"] | components["schemas"]["RunContinues"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    rejectCall: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The approval. */
                approval_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reject"];
            };
        };
        responses: {
            /** @description The run is over. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run is over. */
                        data: components["schemas"]["RunCompleted"] | components["schemas"]["RunFailed"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "text/event-stream": string;
                };
            };
            /** @description The run waits for a person, or continues in the background. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run waits for a person, or continues in the background. */
                        data: components["schemas"]["AwaitingApproval"] | components["schemas"]["AwaitingInput"] | components["schemas"]["RunContinues"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listInputRequests: {
        parameters: {
            query?: {
                /** @description Only those with this status. */
                status?: components["schemas"]["InputRequestStatus"];
                /** @description Only those that this run waits for. */
                run_id?: string;
                /** @description Only those of this agent. */
                agent_id?: string;
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["InputRequestPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getInputRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The input request. */
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["InputRequestDetails"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    answerInputRequest: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The input request. */
                request_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AnswerInput"];
            };
        };
        responses: {
            /** @description The run is over. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run is over. */
                        data: components["schemas"]["RunCompleted"] | components["schemas"]["RunFailed"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "text/event-stream": string;
                };
            };
            /** @description The run waits for a person, or continues in the background. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The run waits for a person, or continues in the background. */
                        data: components["schemas"]["AwaitingApproval"] | components["schemas"]["AwaitingInput"] | components["schemas"]["RunContinues"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listSessionMessages: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The session. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["MessagePage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    runQuery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunQuery"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["QueryAnswer"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-ndjson": unknown;
                    "text/csv": unknown;
                    "application/vnd.apache.parquet": unknown;
                    "application/vnd.apache.arrow.stream": unknown;
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getQuerySchema: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["QueryCatalogue"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    clickHousePing: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `Ok.` */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            500: components["responses"]["INTERNAL"];
        };
    };
    clickHouseGet: {
        parameters: {
            query?: {
                /** @description One SELECT, or its beginning if the rest is in the body. */
                query?: string;
                /** @description The format of the answer; `TabSeparated` by default. */
                default_format?: string;
                /** @description Always `default`. */
                database?: string;
                /** @description Any user name. */
                user?: string;
                /** @description A workspace key. */
                password?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rows, in the requested format. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description An error in ClickHouse's format, with its codes and without the envelope. */
            default: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    clickHousePost: {
        parameters: {
            query?: {
                /** @description One SELECT, or its beginning if the rest is in the body. */
                query?: string;
                /** @description The format of the answer; `TabSeparated` by default. */
                default_format?: string;
                /** @description Always `default`. */
                database?: string;
                /** @description Any user name. */
                user?: string;
                /** @description A workspace key. */
                password?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description One SELECT, or the rest of `query`. */
        requestBody?: {
            content: {
                "text/plain": string;
            };
        };
        responses: {
            /** @description The rows, in the requested format. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description An error in ClickHouse's format, with its codes and without the envelope. */
            default: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    listSavedQueries: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SavedQueryPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createSavedQuery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateSavedQuery"];
            };
        };
        responses: {
            /** @description A query saved in the workspace under a name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SavedQuery"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getSavedQuery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The saved query. */
                query_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A query saved in the workspace under a name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SavedQuery"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteSavedQuery: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The saved query. */
                query_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["DeletedQuery"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editSavedQuery: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The saved query. */
                query_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditSavedQuery"];
            };
        };
        responses: {
            /** @description A query saved in the workspace under a name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SavedQuery"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    runSavedQuery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The saved query. */
                query_id: string;
            };
            cookie?: never;
        };
        /** @description `params` override the saved values of the same names; other saved values still apply. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunSavedQuery"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["QueryAnswer"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                    "application/x-ndjson": unknown;
                    "text/csv": unknown;
                    "application/vnd.apache.parquet": unknown;
                    "application/vnd.apache.arrow.stream": unknown;
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listBoards: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["BoardPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createBoard: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateBoard"];
            };
        };
        responses: {
            /** @description A named page of charts of saved queries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Board"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getBoard: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The board. */
                board_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A named page of charts of saved queries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Board"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteBoard: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The board. */
                board_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["DeletedBoard"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editBoard: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The board. */
                board_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditBoard"];
            };
        };
        responses: {
            /** @description A named page of charts of saved queries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Board"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listAlerts: {
        parameters: {
            query?: {
                /** @description Items per page; default 50. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of a list, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["AlertPage"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    createAlert: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAlert"];
            };
        };
        responses: {
            /** @description A query that runs at an interval, and notifies when a condition starts and stops holding. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Alert"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getAlert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The alert. */
                alert_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A query that runs at an interval, and notifies when a condition starts and stops holding. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Alert"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteAlert: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The alert. */
                alert_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["DeletedAlert"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    editAlert: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version. */
                "If-Match"?: string;
            };
            path: {
                /** @description The alert. */
                alert_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditAlert"];
            };
        };
        responses: {
            /** @description A query that runs at an interval, and notifies when a condition starts and stops holding. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Alert"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    listAlertTemplates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Complete definitions to start from. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["AlertTemplates"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    testAlertDefinition: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestAlertDefinition"];
            };
        };
        responses: {
            /** @description How the states of an alert would have changed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["AlertTest"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    testAlert: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeated call with the same key gets the answer of the first one, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The alert. */
                alert_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestAlert"];
            };
        };
        responses: {
            /** @description How the states of an alert would have changed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["AlertTest"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            413: components["responses"]["PAYLOAD_TOO_LARGE"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    deleteScore: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run. */
                run_id: string;
                /** @description The score. */
                score_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunErasure"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            409: components["responses"]["CONFLICT"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getErasure: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The erasure. */
                erasure_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["RunErasure"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            403: components["responses"]["FORBIDDEN"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getCluster: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Cluster"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            401: components["responses"]["UNAUTHENTICATED"];
            404: components["responses"]["NOT_FOUND"];
            429: components["responses"]["RATE_LIMITED"];
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Alive"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            500: components["responses"]["INTERNAL"];
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Ready"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            500: components["responses"]["INTERNAL"];
            503: components["responses"]["UNAVAILABLE"];
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Prometheus text format */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            500: components["responses"]["INTERNAL"];
        };
    };
    getLimits: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Sizes in bytes, lengths in characters. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Limits"];
                        /** @description Null: the call succeeded. */
                        error: null;
                    };
                };
            };
            400: components["responses"]["VALIDATION_ERROR"];
            500: components["responses"]["INTERNAL"];
        };
    };
}
