"""Text: words and their stems, names, statements, dates, languages and secrets. Pure functions, no I/O."""
