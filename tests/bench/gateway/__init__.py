"""What the benchmarks of the gateway share: the servers, and browsers by the thousand."""
