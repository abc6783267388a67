"""The page: view and correct a memory in a browser."""
