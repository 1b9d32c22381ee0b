"""The scenarios: each brings one kind of trouble over a run of its own, and says what held."""
