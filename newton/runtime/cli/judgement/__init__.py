"""Commands on calibration, guardrails, censors and metrics."""
