-- What a person states or forbids in the words of what a model had proposed: their time, reason and threshold hold.
grant update (valid_from) on heart.facts to newton_app;
grant update (reason, threshold) on heart.censors to newton_app;
grant update (occurred_at) on memory.memories to newton_app;
