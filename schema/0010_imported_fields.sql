alter table heart.facts add column tags text[] not null default '{}';

comment on column heart.facts.tags is 'Categories that the program had given to the fact from which it was imported.';

alter table heart.procedures
    drop constraint procedures_steps_check,
    add column front_matter jsonb not null default '{}' check (jsonb_typeof(front_matter) = 'object');

comment on column heart.procedures.front_matter is 'Fields of the skill file that mean nothing to Newton.';
