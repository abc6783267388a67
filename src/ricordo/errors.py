"""All errors that callers of Ricordo can see.

Each class has a stable `code`. Interfaces map codes to exit and HTTP statuses, and never match text.
"""

from typing import ClassVar


class RicordoError(Exception):
    """The base of all errors: what went wrong (`message`) and how to fix it (`hint`)."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidError(RicordoError):
    """An argument is invalid; the message names it."""

    code = "invalid"
    http_status = 422
    exit_status = 2


class NotFoundError(RicordoError):
    """The thing does not exist, or the caller may not see it. The two cases are never distinguished."""

    code = "not_found"
    http_status = 404
    exit_status = 3


class ConflictError(RicordoError):
    """The state that the call depends on has changed. `commits` are the commits in the way."""

    code = "conflict"
    http_status = 409
    exit_status = 4

    def __init__(self, message: str, *, hint: str = "", commits: tuple[int, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.commits = commits


class DeniedError(RicordoError):
    """The caller may see this, but not change it in this way."""

    code = "denied"
    http_status = 403
    exit_status = 5


class UnavailableError(RicordoError):
    """Busy, closing, or a provider is down: the same call may succeed later."""

    code = "unavailable"
    http_status = 503
    exit_status = 6


class StoreError(RicordoError):
    """The store is damaged, the disk is full, or the store is newer than this code."""

    code = "store"
    http_status = 500
    exit_status = 7
