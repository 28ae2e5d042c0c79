"""The operators' page: a process of its own, with operators' rights and nothing else."""
