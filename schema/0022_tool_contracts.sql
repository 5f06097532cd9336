-- The tools of servers as an agent first saw them. A tool that differs from this is asked about; a row never changes.
create table runtime.tool_contracts (
    agent_id uuid not null references runtime.agents (agent_id),
    server text not null check (server <> ''),
    tool text not null check (tool <> ''),
    fingerprint bytea not null check (length(fingerprint) = 32),
    is_read boolean not null,
    first_seen_at timestamptz not null,
    primary key (agent_id, server, tool)
);

comment on table runtime.tool_contracts is 'How each tool of a server was when the agent first saw it.';
comment on column runtime.tool_contracts.is_read is 'Whether the server said that the tool only reads.';

call runtime.isolate('runtime.tool_contracts');
grant select, insert on runtime.tool_contracts to newton_app;
