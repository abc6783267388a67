"""What the host keeps across restarts: events and who has yet to deal with them, jobs, and where conversations stand.

The only module of the host that speaks SQL. Its file lies beside the store and holds no memory.
"""

from ricordo.host.journal.file import Journal, Rows, journal_path

__all__ = ["Journal", "Rows", "journal_path"]
