-- name: list_speakers(agent_id, session_id)
-- The names of those who say the messages with the role `user` of a session, an empty one for messages without a name.
select distinct coalesce(name, '') as name
from dialogue.messages
where agent_id = $1 and session_id = $2 and role = 'user';

-- name: hears_others(agent_id, name)
-- Whether somebody else than this speaker says a message with the role `user` to the agent, in any session.
select exists (
    select
    from dialogue.messages
    where agent_id = $1 and role = 'user' and coalesce(name, '') <> $2
) as hears_others;
