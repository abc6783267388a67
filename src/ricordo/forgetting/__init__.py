"""Forgetting: fading, archiving, forgetting on request, erasing and undo."""
