"""What a store does around each commit beyond SQLite's own: nothing for a single file, the plain files of a folder."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import apsw


class Journal:
    """Follows the writer through a batch. This one keeps nothing: SQLite's file is the store."""

    is_written = False
    """Whether the batch at hand has happened, whatever becomes of the index."""

    def held(self) -> AbstractContextManager[None]:
        """Around a batch: whatever keeps other writers out."""
        return nullcontext()

    def current(self, connection: apsw.Connection) -> apsw.Connection:
        """The connection to write with; another one where the index was replaced."""
        return connection

    def begin(self, connection: apsw.Connection) -> None:
        """The transaction has begun: catch up with what others did."""

    def worked(self, connection: apsw.Connection) -> None:
        """One work of the batch is done, and can still be told from the next."""

    def write(self, connection: apsw.Connection) -> None:
        """Right before the COMMIT. After this the batch has happened.

        Raises:
            apsw.Error: it could not be written; nothing of it is left.
        """
