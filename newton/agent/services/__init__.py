"""Operations on one agent: one service for each kind of resource."""
