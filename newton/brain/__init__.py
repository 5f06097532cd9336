"""Decisions: how they are recorded, reviewed and checked.

The ledger is a hash chain of their records, guardrails are conditions that are checked before recording, and
calibration compares stated confidence with outcomes.
"""
