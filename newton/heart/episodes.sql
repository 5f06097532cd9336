-- name: insert_episodes(agent_id, episodes)
insert into heart.episodes (
    agent_id, memory_id, session_id, first_position, last_position, title, started_at, ended_at, participants
)
select
    $1, d.memory_id, d.session_id, d.first_position, d.last_position, d.title, d.started_at, d.ended_at,
    d.participants
from jsonb_to_recordset($2::jsonb) as d (
    memory_id uuid, session_id uuid, first_position integer, last_position integer, title text,
    started_at timestamptz, ended_at timestamptz, participants text[]
)
returning agent_id;

-- name: get_episode(agent_id, memory_id)
select title, started_at, ended_at, participants
from heart.episodes
where agent_id = $1 and memory_id = $2;

-- name: set_title(agent_id, memory_id, title)
update heart.episodes as e
set title = $3
from memory.memories as m
where e.agent_id = $1 and e.memory_id = $2 and m.agent_id = $1 and m.memory_id = $2
returning e.started_at, m.outcome;

-- name: find_by_hash(agent_id, content_hash)
select memory_id
from memory.memories
where agent_id = $1 and kind = 'episode' and content_hash = $2;
