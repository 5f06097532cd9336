"""Operations on conversations and the tasks in them."""
