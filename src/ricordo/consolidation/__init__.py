"""Consolidation: turn conversations into knowledge, and change knowledge as new facts and decisions arrive."""
