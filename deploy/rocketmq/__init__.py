"""A real RocketMQ on one machine, for tests and for a look around; see `__main__`."""
