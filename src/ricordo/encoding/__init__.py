"""A message becomes an episode, and a statement a fact: what is stored, without any model."""
