"""Commands on calibration, prohibitions, decision rules and quality metrics."""
