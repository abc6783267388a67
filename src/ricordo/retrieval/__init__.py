"""Retrieval: a question becomes ranked memories, or a block of context. No model, no writes."""
