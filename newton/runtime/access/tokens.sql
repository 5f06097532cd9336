-- name: insert_token(agent_id, token_id, name, scope, hash, now, expires_at, users, max_users, speaker)
insert into runtime.tokens (agent_id, token_id, name, scope, hash, created_at, expires_at, users, max_users, speaker)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
where not exists (
    select from runtime.tokens
    where agent_id = $1 and name = $3 and revoked_at is null and (expires_at is null or expires_at > $6)
)
returning token_id;

-- name: authenticate(agent_id, token_id, hash, now)
select agent, scope, users, first_user, name, speaker
from runtime.authenticate_token($1, $2, $3, $4);

-- name: list_tokens(agent_id)
select token_id, name, scope, created_at, expires_at, revoked_at, used_at, users, max_users, speaker
from runtime.tokens
where agent_id = $1
order by created_at, token_id;

-- name: read_max_users(agent_id, token_id)
select max_users
from runtime.tokens
where agent_id = $1 and token_id = $2;

-- name: bind_user(agent_id, token_id, first_user)
-- The first user stays: of two concurrent requests, one changes nothing.
update runtime.tokens
set first_user = coalesce(first_user, $3)
where agent_id = $1 and token_id = $2
returning first_user;

-- name: revoke_token(agent_id, token_id, now)
update runtime.tokens
set revoked_at = $3
where agent_id = $1 and token_id = $2 and revoked_at is null
returning name;
