"""A question becomes ranked memories, or a block of context. Never a model, never a write."""
