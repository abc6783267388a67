"""Every setting with its default, unit and meaning. The only reader of the environment and of `ricordo.toml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.model import DecayCloses, Durability, Fusion, SecretsPolicy, SignalName, UntrustedPolicy

PREFIX = "RICORDO_"


def _setting(default: Any, meaning: str, *, least: float | None = None, most: float | None = None) -> Any:
    return field(default=default, metadata={"meaning": meaning, "least": least, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a store is used. Properties of the data are kept in the store itself; those of a question are arguments."""

    durability: Durability = _setting(
        "disk", "what an acknowledged write survives: `disk` a power loss, `process` a killed process"
    )
    time_zone: str = _setting("UTC", "the user's time zone, an IANA name such as `Europe/Berlin`")
    secrets: SecretsPolicy = _setting(
        "redact", "what happens to credentials in a text: `redact` them, `refuse` the text, or `keep` them"
    )
    patience_s: float = _setting(30.0, "how long a write waits for another process, in seconds", least=0.1, most=600)
    queue_limit: int = _setting(10_000, "how many writes of this process may wait", least=1, most=1_000_000)
    reader_threads: int = _setting(2, "how many questions are answered side by side", least=1, most=64)
    brief_search_ms: float = _setting(
        10.0,
        "searches that lately took no longer, in milliseconds, keep their caller's thread, and its event loop, for as"
        " long; longer ones have a thread of their own, and so have all where this is 0",
        least=0,
        most=1_000,
    )
    max_text_chars: int = _setting(
        10_000_000, "the longest text that is taken, in characters", least=1_000, most=100_000_000
    )
    embedding_batch: int = _setting(64, "how many texts are embedded together in the background", least=1, most=2_048)
    fresh_wait_ms: int = _setting(
        1_500,
        "how long a search waits for the vectors of what was written just before, in milliseconds",
        least=0,
        most=60_000,
    )
    search_deadline_ms: int = _setting(
        5_000, "when a search answers with what it has, in milliseconds", least=50, most=600_000
    )
    context_tokens: int = _setting(
        2_000,
        "how long a context block may be, in tokens; half for a simple prompt, half more for a complex one",
        least=100,
        most=1_000_000,
    )
    fusion: Fusion = _setting(
        "score", "how signals become a score: `score` adds what they measured, `rrf` reciprocal ranks, both by weight"
    )
    without_signals: str = _setting(
        "", "signals of recall to leave out, by name, with commas between: `person, kind of answer`"
    )
    untrusted_knowledge: UntrustedPolicy = _setting(
        "hold",
        "what becomes of facts that a tool or a page tells: `hold` them in quarantine until somebody approves them, or"
        " `label` them; what reads like an order is held in any case",
    )
    reinforce_amount: float = _setting(3.0, "what `reinforce` adds to a memory's score", least=0.1, most=20)
    demote_amount: float = _setting(1.0, "what `demote` takes from a memory's score", least=0.1, most=20)
    decay_closes: DecayCloses = _setting(
        "ephemeral",
        "what upkeep closes once it has faded: `ephemeral` what passes and what was only inferred, never what the user "
        "said; `all` everything",
    )
    protect_mentions: int = _setting(
        50,
        "who is named in more memories than that keeps what is known of them from fading; 0: nobody does so",
        least=0,
        most=1_000_000,
    )
    max_entries: int = _setting(
        0, "how much may be known to one owner, in memories; `gc` evicts the rest; 0: no limit", least=0, most=10**9
    )
    max_size: int = _setting(
        0, "how much may be known to one owner, in bytes of text; `prune` sees to it; 0: no limit", least=0, most=10**15
    )
    auto_gc: bool = _setting(False, "whether opening a store takes to the archive whatever `gc` would")
    provider_timeout_s: float = _setting(
        30.0, "how long a remote embedder may take for one call, in seconds", least=0.1, most=3_600
    )
    model_timeout_s: float = _setting(
        120.0, "how long a language model may take for one answer, in seconds", least=0.1, most=3_600
    )
    model_context_tokens: int = _setting(
        0,
        "how many tokens the language model takes, prompt and answer together; 0: what is usual for it",
        least=0,
        most=10_000_000,
    )
    extraction_min_confidence: float = _setting(
        0.7, "how sure a model must be of what it finds in a conversation, from 0 to 1", least=0, most=1
    )
    conflict_min_confidence: float = _setting(
        0.8, "how sure a model must be that a fact no longer holds for a newer one to take its place", least=0, most=1
    )
    extraction_enabled: bool = _setting(
        False, "whether conversations are read as they go on, in the background, and not only when they are over"
    )
    extraction_wait_s: float = _setting(
        20.0, "how long a conversation must pause before what is new in it is read, in seconds", least=0, most=86_400
    )
    daily_tokens: int = _setting(
        0, "how many tokens language models may take in a day, in and out; 0: no limit", least=0, most=10**12
    )
    model: str = _setting(
        "",
        "what turns conversations into knowledge at the command line and in servers, such as `ollama:qwen3`; empty or"
        " `none`: nothing does",
    )
    chat_model: str = _setting("", "what answers in `ricordo chat`; empty: the same model")
    session_timeout_s: float = _setting(
        1_800.0, "after how long a silence a chat's session is over, in seconds", least=1, most=86_400 * 30
    )
    maintain_at: str = _setting(
        "0 3 * * *", "when a host does a night's work: a cron expression in the time zone above"
    )
    prune_at: str = _setting("0 4 * * *", "when a host looks whether what is known has grown too large")
    nightly: bool = _setting(
        False, "whether `ricordo serve` and `ricordo mcp` do a night's work at its hour; `ricordo chat` always does"
    )
    model_price_in: float = _setting(0.0, "what a million tokens of prompt cost; 0: unknown", least=0, most=1e6)
    model_price_out: float = _setting(0.0, "what a million tokens of answer cost; 0: unknown", least=0, most=1e6)

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each.name, getattr(self, each.name), each.metadata["least"], each.metadata["most"])
        if not isinstance(self.extraction_enabled, bool):
            raise InvalidError(f"extraction_enabled: {self.extraction_enabled!r} is neither true nor false")
        if self.durability not in ("disk", "process"):
            raise InvalidError(f"durability: {self.durability!r} is unknown", hint="choose disk or process")
        if self.secrets not in ("redact", "refuse", "keep"):
            raise InvalidError(f"secrets: {self.secrets!r} is unknown", hint="choose redact, refuse or keep")
        if self.untrusted_knowledge not in ("hold", "label"):
            raise InvalidError(
                f"untrusted_knowledge: {self.untrusted_knowledge!r} is unknown", hint="choose hold or label"
            )
        if self.fusion not in get_args(Fusion):
            raise InvalidError(f"fusion: {self.fusion!r} is unknown", hint="choose score or rrf")
        if self.decay_closes not in get_args(DecayCloses):
            raise InvalidError(f"decay_closes: {self.decay_closes!r} is unknown", hint="choose ephemeral or all")
        for name in ("auto_gc", "nightly"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidError(f"{name}: {getattr(self, name)!r} is neither true nor false")
        self.signals_left_out()
        zone_of(self.time_zone)

    def signals_left_out(self) -> frozenset[str]:
        """The names in `without_signals`.

        Raises:
            InvalidError: one of them is no signal, or none would be left.
        """
        if not isinstance(self.without_signals, str):
            raise InvalidError("without_signals must be text", hint="names with commas between")
        known = get_args(SignalName)
        named = frozenset(name.strip().lower() for name in self.without_signals.split(",") if name.strip())
        if unknown := sorted(named.difference(known)):
            raise InvalidError(
                f"without_signals: {', '.join(map(repr, unknown))} unknown", hint=f"choose among {', '.join(known)}"
            )
        if len(named) == len(known):
            raise InvalidError("without_signals: none would be left", hint="leave at least one in")
        return named


def _check(name: str, value: Any, least: float | None, most: float | None) -> None:
    if least is None or most is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidError(
            f"{name}: {value!r} is not a number from {least:g} to {most:g}", hint="see the settings page"
        )


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name.

    Raises:
        InvalidError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:  # which of them depends on how wrong the name is
        raise InvalidError(f"time_zone: {name!r} is unknown", hint="use a name such as Europe/Berlin") from error


def load(*, environment: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """The settings of an entry point: `ricordo.toml` first, then `RICORDO_...` variables over it.

    Raises:
        InvalidError: a value does not fit, or `file` names a setting there is not.
    """
    known = {each.name for each in fields(Settings)}
    values: dict[str, Any] = {}
    if file is not None and file.exists():
        values |= _from_file(file, known)
    environment = os.environ if environment is None else environment
    values |= {name: environment[PREFIX + name.upper()] for name in known if PREFIX + name.upper() in environment}
    return _coerced(values) if values else Settings()


def _from_file(file: Path, known: set[str]) -> dict[str, Any]:
    import tomllib  # most programs have no such file

    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"{file} cannot be read: {error}", hint="it must be TOML") from error
    for name in values.keys() - known:
        raise InvalidError(f"{file}: there is no setting {name!r}", hint="see the settings page")
    return values


def _coerced(values: dict[str, Any]) -> Settings:
    """Text becomes numbers where the field wants one. Imported late: most programs pass their settings in code."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Settings).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidError(f"{name}: {first['msg']}", hint="see the settings page") from error


def api_key(provider: str) -> str | None:
    """The key of a provider, from the variable its own tools use."""
    return os.environ.get(f"{provider.upper()}_API_KEY") or None


def default_location(environment: Mapping[str, str] | None = None) -> str:
    """`$RICORDO_STORE` as it is given, since a slash at its end asks for a folder; else a file in the platform's data
    folder.
    """
    environment = os.environ if environment is None else environment
    if given := environment.get("RICORDO_STORE"):
        return given
    from platformdirs import user_data_path

    return str(user_data_path("ricordo", appauthor=False) / "memory.db")


def default_embedder(environment: Mapping[str, str] | None = None) -> str | None:
    """`$RICORDO_EMBEDDER`, else the one the store was last opened with. `none` means full text only."""
    environment = os.environ if environment is None else environment
    name = environment.get("RICORDO_EMBEDDER") or "stored"
    return None if name == "none" else name


def default_owner(environment: Mapping[str, str] | None = None) -> str:
    """`$RICORDO_OWNER`: whose memory it is where nobody says; "me" by default."""
    environment = os.environ if environment is None else environment
    return environment.get("RICORDO_OWNER") or "me"


def default_chat(environment: Mapping[str, str] | None = None) -> str | None:
    """`$RICORDO_CHAT`: the group whose memory is looked into where nobody says; none by default."""
    environment = os.environ if environment is None else environment
    return environment.get("RICORDO_CHAT") or None
