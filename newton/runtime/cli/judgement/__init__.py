"""Commands on calibration, prohibitions, decision rules, the growth report and quality metrics."""
