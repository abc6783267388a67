"""The page: look at a memory in a browser, and set it right."""
