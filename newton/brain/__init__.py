"""Decisions: the ledger, guardrails, reviews and calibration."""
