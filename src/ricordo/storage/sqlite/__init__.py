"""The single-file backend: one SQLite file is the whole store."""
