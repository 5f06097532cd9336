-- What Newton itself says in a conversation, because no model did: a quote of memory, or why there is no answer.
alter table dialogue.messages add column aside boolean not null default false;

comment on column dialogue.messages.aside is 'An aside of Newton''s: kept here, sent to no model, and no memory.';
