"""Calibration of stated confidence, computed from reviewed decisions only."""
