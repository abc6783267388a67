"""Every error a caller of Ricordo can see, on one screen.

Each class carries a stable `code`; doors map codes to exit and HTTP statuses and never match text.
"""

from typing import ClassVar


class RicordoError(Exception):
    """What went wrong (`message`) and what to do about it (`hint`)."""

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
    """An argument cannot be accepted as it is; the message names it."""

    code = "invalid"
    http_status = 422
    exit_status = 2


class NotFoundError(RicordoError):
    """There is no such thing, or it is not the caller's to see: the two are never told apart."""

    code = "not_found"
    http_status = 404
    exit_status = 3


class ConflictError(RicordoError):
    """The store has moved on: what the caller builds on is no longer so. `commits` are the changes in the way."""

    code = "conflict"
    http_status = 409
    exit_status = 4

    def __init__(self, message: str, *, hint: str = "", commits: tuple[int, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.commits = commits


class DeniedError(RicordoError):
    """The caller may see this, but not do that to it."""

    code = "denied"
    http_status = 403
    exit_status = 5


class UnavailableError(RicordoError):
    """Busy, closing, or a provider is down: the same call may succeed later."""

    code = "unavailable"
    http_status = 503
    exit_status = 6


class StoreError(RicordoError):
    """The store itself is damaged, full, or newer than this code."""

    code = "store"
    http_status = 500
    exit_status = 7
