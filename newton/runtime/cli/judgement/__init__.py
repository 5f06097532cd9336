"""Commands on calibration, censors, guardrails, the growth report and quality metrics."""
