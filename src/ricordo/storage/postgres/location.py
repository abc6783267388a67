"""The location of a PostgreSQL store: a connection string, and the database schema that holds the store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ricordo.errors import InvalidError

DEFAULT_SCHEMA = "ricordo"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,54}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A store in a database.

    Attributes:
        conninfo: the connection string for the client library; it may contain a password.
        schema: the schema of the store; the schema "<schema>_past" holds its views of the past.
        prepare: whether the server may prepare statements; None if it may unless there is a pooler before it, which may
            not forward them.
    """

    conninfo: str
    schema: str
    prepare: bool | None = None

    @classmethod
    def of(cls, text: str) -> Location:
        """Parse "postgresql://user@host/database?schema=name&prepare=off". Other parameters go to the client library.

        Raises:
            InvalidError: it is not such an address.
        """
        try:
            parts = urlsplit(text)
        except ValueError as error:
            raise InvalidError(f"location: {error}", hint="postgresql://user@host:5432/database") from error
        given = parse_qsl(parts.query, keep_blank_values=True)
        schema = next((value for name, value in given if name == "schema"), DEFAULT_SCHEMA)
        if not _SCHEMA.match(schema):
            raise InvalidError(
                f"location: {schema!r} cannot be the schema of a store",
                hint="use up to 55 small letters, digits and underscores",
            )
        prepare = next((value for name, value in given if name == "prepare"), None)
        if prepare not in ("on", "off", None):
            raise InvalidError(f"location: prepare={prepare}", hint="use prepare=on or prepare=off")
        query = urlencode([(name, value) for name, value in given if name not in ("schema", "prepare")])
        conninfo = urlunsplit(("postgresql", parts.netloc, parts.path, query, ""))
        return cls(conninfo=conninfo, schema=schema, prepare=None if prepare is None else prepare == "on")

    @property
    def past(self) -> str:
        """The schema of the views of the past."""
        return f"{self.schema}_past"

    @property
    def path(self) -> Path:
        """A name for messages that mention a file. There is no such file."""
        return Path("/postgresql") / (urlsplit(self.conninfo).path.strip("/") or "postgres") / self.schema

    def worded(self, statement: str) -> str:
        """Return a statement with the store's schema names in place of `main.` and `past.`."""
        return re.sub(
            r"\b(main|past)\.", lambda found: f'"{self.schema if found[1] == "main" else self.past}".', statement
        )
