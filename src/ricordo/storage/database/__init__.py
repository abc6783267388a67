"""The store as one SQLite file."""
