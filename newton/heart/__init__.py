"""Memory kinds: facts, episodes, events, procedures, censors, documents, entities and the identity."""
