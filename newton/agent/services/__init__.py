"""Operations on one agent, one service per resource."""
