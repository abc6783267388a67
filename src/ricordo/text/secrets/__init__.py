"""Credentials in a message are found and replaced before anything is stored. See `find` for how and why."""

from ricordo.text.secrets.find import KINDS, Finding, Redacted, find_secrets, redact

__all__ = ["KINDS", "Finding", "Redacted", "find_secrets", "redact"]
