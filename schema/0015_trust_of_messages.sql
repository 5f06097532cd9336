alter table dialogue.messages
    add column min_trust text check (min_trust in ('operator', 'user', 'agent', 'tool', 'web'));

comment on column dialogue.messages.min_trust is
    'The lowest trust of the text that the speaker had read, or that the output of a tool contains; null if none is known.';

comment on column heart.episodes.parsed_at is
    'When the statement parser read it before the model; null if it did not, or if there is no model.';
