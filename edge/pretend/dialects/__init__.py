"""One module a provider: its API in, its words and signatures out."""
