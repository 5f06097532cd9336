"""Operations on recorded decisions and their outcomes."""
