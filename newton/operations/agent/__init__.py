"""Operations on the agent itself: who it is, and what its model may do."""
