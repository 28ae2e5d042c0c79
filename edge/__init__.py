"""The edges: where HTTP meets the stored functions that decide."""
