"""How far stated confidence can be trusted, computed from decisions with an outcome and nothing else."""
