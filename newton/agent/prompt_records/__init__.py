"""Records of what was sent to a model: references to stored texts, and the texts that are stored nowhere else."""
