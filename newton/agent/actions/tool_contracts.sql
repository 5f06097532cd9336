-- name: list_contracts(agent_id, servers, tools)
select c.server, c.tool, c.fingerprint, c.is_read
from runtime.tool_contracts as c
where c.agent_id = $1 and (c.server, c.tool) in (select n.server, n.tool from unnest($2::text[], $3::text[]) as n (server, tool));

-- name: insert_contract(agent_id, server, tool, fingerprint, is_read, now)
-- Another process may have seen the tool at the same time; what it stored is kept.
insert into runtime.tool_contracts (agent_id, server, tool, fingerprint, is_read, first_seen_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (agent_id, server, tool) do nothing;
