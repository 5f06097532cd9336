-- What a person asks not to keep is hidden: its message, what was made of it, and the replies to it.
alter table heart.line_changes drop constraint line_changes_effect_check;
alter table heart.line_changes add constraint line_changes_effect_check check (effect in (
    'learnt', 'confirmed', 'replaced', 'ended', 'retracted', 'merged', 'unsettled', 'ruled', 'lifted', 'proposed', 'hidden'
));

comment on column heart.line_changes.target_id is
'The fact, procedure or decision, the line of the identity, or the hidden memory.';
comment on column memory.memories.quarantined is
'Written by a tool or the web and not corroborated yet, or, with a higher trust, what a person asked not to keep.';
