"""A folder of plain text as the truth, and an index over it that can be deleted at any time."""
