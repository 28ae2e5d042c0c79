"""Stage 80: what browsers talk to, snapshots and event streams of their projects."""
