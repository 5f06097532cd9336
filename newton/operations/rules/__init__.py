"""Operations on what the agent must or must not do, and how: censors, guardrails and procedures."""
