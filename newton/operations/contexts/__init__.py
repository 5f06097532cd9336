"""Operations on the contexts of an agent, and on what shapes them."""
