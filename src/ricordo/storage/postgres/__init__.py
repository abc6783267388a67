"""The PostgreSQL backend: one schema of a database holds a store, for many processes on many machines."""
