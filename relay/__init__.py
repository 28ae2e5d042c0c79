"""From the outbox to whoever follows a task: the bus, its publisher and its consumers."""
