"""The end of a memory's life, and its return."""
