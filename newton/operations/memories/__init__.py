"""Operations on what is remembered: memories, their conflicts, entities, attributes and documents."""
