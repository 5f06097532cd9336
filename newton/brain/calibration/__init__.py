"""Calibration of stated confidence: how well it agrees with the outcomes of reviewed decisions."""
