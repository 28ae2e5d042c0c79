"""What keeps a running installation healthy."""
