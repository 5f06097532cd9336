-- name: insert_prompt(agent_id, prompt_id, session_id, input_position, now, view_last, tail, bundle_id, stable_chars, model, max_tokens, part_tokens, finish, error, salt, hash, text_hashes, text_rows, edition_hash, message_chars, identical_chars, difference)
-- Stores a prompt and those of its texts that are not stored yet. A text that was stored within a day is only read.
with wanted as (
    select r.*
    from
        jsonb_to_recordset($18::jsonb) as r (
            text_id uuid, hash text, kind text, content text, is_exact boolean, session_id uuid, first_position integer,
            last_position integer
        )
),
known as (
    select t.text_id, t.hash
    from cognition.prompt_texts as t
    where
        t.agent_id = $1
        and t.hash = any(array_append($17::bytea[], $19::bytea))
        and t.used_at > $5::timestamptz - interval '1 day'
),
added as (
    insert into cognition.prompt_texts (
        agent_id, text_id, hash, kind, content, is_exact, session_id, first_position, last_position, used_at
    )
    select
        $1, w.text_id, decode(w.hash, 'hex'), w.kind, w.content, w.is_exact, w.session_id, w.first_position,
        w.last_position, $5
    from wanted as w
    where not exists (select from known as k where k.hash = decode(w.hash, 'hex'))
    order by w.hash  -- the same order in all transactions, so that they do not wait for each other in a circle
    on conflict (agent_id, hash) do update set used_at = excluded.used_at
    returning text_id, hash
),
stored as (
    select text_id, hash
    from known
    union all
    select text_id, hash
    from added
)
insert into cognition.prompts (
    agent_id, prompt_id, session_id, input_position, created_at, edition_id, view_last, tail, text_ids, bundle_id,
    stable_chars, model, max_tokens, part_tokens, finish, error, salt, hash, message_chars, identical_chars, difference
)
select
    $1, $2, $3, $4, $5, (select s.text_id from stored as s where s.hash = $19), $6, $7,
    array(
        select s.text_id
        from unnest($17::bytea[]) with ordinality as h (hash, place)
        join stored as s on s.hash = h.hash
        order by h.place
    ),
    $8, $9, $10, $11, $12, $13, $14, $15, $16, $20, $21, $22
returning agent_id;

-- name: list_prompts(agent_id, session_id, input_position)
-- The prompts of one turn, oldest first, with the tokens that the model reported.
select
    p.prompt_id, p.session_id, s.ref as session, p.input_position, p.created_at, p.edition_id, p.view_last, p.tail,
    p.text_ids, p.bundle_id, p.stable_chars, p.model, p.max_tokens, p.part_tokens as tokens, p.finish, p.error, p.salt, p.hash,
    p.message_chars, p.identical_chars, p.difference, u.model as served_model, u.input_tokens, u.output_tokens,
    u.estimated
from cognition.prompts as p
join dialogue.sessions as s on s.agent_id = $1 and s.session_id = p.session_id
left join runtime.usage as u on u.agent_id = $1 and u.usage_id = p.prompt_id
where p.agent_id = $1 and p.session_id = $2 and p.input_position = $3
order by p.prompt_id;

-- name: find_turn_at(agent_id, session_id, position)
-- The last turn whose input is not after a position.
select input_position
from cognition.prompts
where agent_id = $1 and session_id = $2 and input_position <= $3
order by input_position desc
limit 1;

-- name: find_nth_last_turn(agent_id, session_id, rows_to_skip)
-- The latest turn, or an earlier one; of all sessions if session_id is null.
select session_id, input_position
from (
    select session_id, input_position, max(prompt_id::text) as last_prompt
    from cognition.prompts
    where agent_id = $1 and ($2::uuid is null or session_id = $2)
    group by session_id, input_position
) as t
order by last_prompt desc
offset $3
limit 1;

-- name: find_by_id_part(agent_id, id_part, max_rows)
select distinct session_id, input_position
from cognition.prompts
where
    agent_id = $1
    and (
        right(replace(prompt_id::text, '-', ''), length($2)) = $2
        or left(replace(prompt_id::text, '-', ''), length($2)) = $2
    )
limit $3;

-- name: list_texts(agent_id, text_ids)
select text_id, kind, content, is_exact
from cognition.prompt_texts
where agent_id = $1 and text_id = any($2::uuid[]);

-- name: list_entries(agent_id, session_id, entry_ids)
select entry_id, kind, first_position as first, last_position as last, strategy, model, text
from dialogue.compaction_entries
where agent_id = $1 and session_id = $2 and entry_id = any($3::uuid[]);

-- name: get_context(agent_id, bundle_id)
select text
from cognition.bundles
where agent_id = $1 and bundle_id = $2;

-- name: delete_expired(agent_id, moment)
select cognition.delete_expired_prompts($1, $2) as deleted;
