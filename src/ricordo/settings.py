"""All settings with default, unit and meaning. The only module that reads the environment and `ricordo.toml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.model import (
    DecayCloses,
    Durability,
    Fusion,
    PersonalData,
    ReceiptsPolicy,
    SecretsPolicy,
    SignalName,
    UntrustedPolicy,
)

PREFIX = "RICORDO_"


def _setting(default: Any, meaning: str, *, least: float | None = None, most: float | None = None) -> Any:
    return field(default=default, metadata={"meaning": meaning, "least": least, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a store is used. Properties of the data are in the store itself; properties of a question are arguments."""

    durability: Durability = _setting(
        "disk", "what an acknowledged write survives: with `disk` a power loss, with `process` a killed process"
    )
    time_zone: str = _setting("UTC", "the user's time zone, an IANA name such as `Europe/Berlin`")
    secrets: SecretsPolicy = _setting(
        "redact", "what to do with credentials in a text: `redact` them, `refuse` the text, or `keep` them"
    )
    key: str = field(
        default="",
        repr=False,
        metadata={
            "meaning": "the key of an encrypted store: `file:PATH` its first line, `keyring:NAME` the system's keyring,"
            " `env:NAME` a variable, or the key itself: a passphrase, or 64 hexadecimal digits; empty: not encrypted",
            "least": None,
            "most": None,
        },
    )
    redact: str = _setting(
        "",
        "personal data to replace in every text before it is stored, separated by commas: `email`, `phone`, `card`, "
        "`iban`, `id_number`; credentials have a setting of their own, `secrets`",
    )
    witness: str = _setting(
        "",
        "a file on another disk or in another account, to which the hash of the newest commit is appended when the "
        "store is closed or checked; `doctor` compares, so a rewritten or older store is noticed",
    )
    patience_s: float = _setting(30.0, "how long a write waits for another process, in seconds", least=0.1, most=600)
    queue_limit: int = _setting(10_000, "how many writes of this process may wait", least=1, most=1_000_000)
    reader_threads: int = _setting(2, "how many reads run in parallel", least=1, most=64)
    max_text_chars: int = _setting(
        10_000_000, "the longest text that is accepted, in characters", least=1_000, most=100_000_000
    )
    embedding_batch: int = _setting(64, "how many texts are embedded together in the background", least=1, most=2_048)
    fresh_wait_ms: int = _setting(
        1_500, "how long a search waits for the vectors of recent writes, in milliseconds", least=0, most=60_000
    )
    search_deadline_ms: int = _setting(
        5_000, "after how long a search returns what it has, in milliseconds", least=50, most=600_000
    )
    receipts: ReceiptsPolicy = _setting(
        "off",
        "which calls leave a receipt: `off` those that ask for one, `answers` every search, context and answer, `reads`"
        " also each memory, list, person, session and export that is read",
    )
    receipts_days: int = _setting(30, "after how many days `gc` deletes receipts", least=1, most=36_500)
    reranker: str = _setting(
        "", "the reranker of searches, such as `cohere:rerank-v3.5` or `http://localhost:8000/v1#MODEL`; empty: none"
    )
    reranker_candidates: int = _setting(30, "how many of the best memories the reranker reads", least=2, most=200)
    reranker_chars: int = _setting(
        1_500, "how much of a memory the reranker reads, in characters", least=100, most=100_000
    )
    reranker_deadline_ms: int = _setting(
        2_000, "how long a search waits for the reranker, in milliseconds", least=10, most=600_000
    )
    reranker_weight: float = _setting(
        1.0, "how much the reranker counts, compared with all signals of the search together", least=0.01, most=100
    )
    context_tokens: int = _setting(
        2_000,
        "how long a context block may be, in tokens; half for a simple prompt, half more for a complex one",
        least=100,
        most=1_000_000,
    )
    fusion: Fusion = _setting(
        "score", "how signals become a score: `score` adds their values, `rrf` adds reciprocal ranks, both weighted"
    )
    languages: str = _setting(
        "",
        "paths of further language files, separated by commas; they apply to the whole process, and the index of a"
        " store is rebuilt when they change",
    )
    without_signals: str = _setting("", "ranking signals to leave out, separated by commas: `person, kind of answer`")
    untrusted_knowledge: UntrustedPolicy = _setting(
        "hold",
        "what to do with facts from a tool or a web page: `hold` them in quarantine until they are approved, "
        "or `label` them; what reads like an instruction is always held",
    )
    reinforce_amount: float = _setting(3.0, "what `reinforce` adds to a memory's score", least=0.1, most=20)
    demote_amount: float = _setting(1.0, "what `demote` subtracts from a memory's score", least=0.1, most=20)
    decay_closes: DecayCloses = _setting(
        "ephemeral",
        "what upkeep closes once it has faded: with `ephemeral` only passing and inferred memories, never "
        "what the user said; with `all` everything",
    )
    protect_mentions: int = _setting(
        50,
        "facts about an entity that is named in more memories than this do not fade; 0: no such protection",
        least=0,
        most=1_000_000,
    )
    max_entries: int = _setting(
        0, "the most memories of knowledge an owner may have; `gc` evicts the rest; 0: no limit", least=0, most=10**9
    )
    max_size: int = _setting(
        0, "the most bytes of knowledge an owner may have; `prune` archives the rest; 0: no limit", least=0, most=10**15
    )
    auto_gc: bool = _setting(False, "run `gc` whenever a store is opened")
    provider_timeout_s: float = _setting(
        30.0, "how long one call of a remote embedder may take, in seconds", least=0.1, most=3_600
    )
    model_timeout_s: float = _setting(
        120.0, "how long one answer of a language model may take, in seconds", least=0.1, most=3_600
    )
    model_context_tokens: int = _setting(
        0,
        "the context size of the language model in tokens, prompt and answer together; 0: the usual one for it",
        least=0,
        most=10_000_000,
    )
    extraction_min_confidence: float = _setting(
        0.7, "the least confidence at which a fact found by a model is kept, from 0 to 1", least=0, most=1
    )
    conflict_min_confidence: float = _setting(
        0.8, "the least confidence at which a model may replace a fact by a newer one, from 0 to 1", least=0, most=1
    )
    extraction_enabled: bool = _setting(
        False, "extract facts from conversations in the background while they go on, not only when they are finished"
    )
    extraction_wait_s: float = _setting(
        20.0, "how long a conversation must pause before it is read in the background, in seconds", least=0, most=86_400
    )
    daily_tokens: int = _setting(
        0, "how many tokens language models may use in a day, prompts and answers; 0: no limit", least=0, most=10**12
    )
    reflect_days: int = _setting(
        0,
        "every how many days maintenance reflects on what was learnt, with the language model; 0: never",
        least=0,
        most=365,
    )
    model: str = _setting(
        "",
        "the language model for consolidation at the command line and in servers, such as `ollama:qwen3`; "
        "empty or `none`: no model",
    )
    chat_model: str = _setting("", "the language model that answers in `ricordo chat`; empty: the same as `model`")
    session_timeout_s: float = _setting(
        1_800.0, "after how long a pause the session of a chat ends, in seconds", least=1, most=86_400 * 30
    )
    maintain_at: str = _setting(
        "0 3 * * *", "when a host runs nightly maintenance: a cron expression in the time zone above"
    )
    prune_at: str = _setting("0 4 * * *", "when a host checks whether there is too much knowledge: a cron expression")
    nightly: bool = _setting(
        False, "run nightly maintenance in `ricordo serve` and `ricordo mcp`; `ricordo chat` always does"
    )
    model_price_in: float = _setting(0.0, "the price of a million prompt tokens; 0: unknown", least=0, most=1e6)
    model_price_out: float = _setting(0.0, "the price of a million answer tokens; 0: unknown", least=0, most=1e6)

    def __post_init__(self) -> None:
        types = get_type_hints(type(self))
        for each in fields(self):
            value = getattr(self, each.name)
            _check_range(each.name, value, each.metadata["least"], each.metadata["most"])
            _check_type(each.name, value, types[each.name])
        self.signals_left_out()
        self.redacted_kinds()
        zone_of(self.time_zone)

    def redacted_kinds(self) -> frozenset[str]:
        """Return the names in `redact`. Raises InvalidError if one of them is not a kind of personal data."""
        if not isinstance(self.redact, str):
            raise InvalidError("redact must be text", hint="separate names by commas")
        named = frozenset(name.strip().lower() for name in self.redact.split(",") if name.strip())
        if unknown := sorted(named.difference(get_args(PersonalData))):
            raise InvalidError(
                f"redact: {', '.join(map(repr, unknown))} unknown",
                hint=f"choose among {', '.join(get_args(PersonalData))}",
            )
        return named

    def signals_left_out(self) -> frozenset[str]:
        """Return the names in `without_signals`.

        Raises:
            InvalidError: one of them is not a signal, or no signal would remain.
        """
        if not isinstance(self.without_signals, str):
            raise InvalidError("without_signals must be text", hint="separate names by commas")
        known = get_args(SignalName)
        named = frozenset(name.strip().lower() for name in self.without_signals.split(",") if name.strip())
        if unknown := sorted(named.difference(known)):
            raise InvalidError(
                f"without_signals: {', '.join(map(repr, unknown))} unknown", hint=f"choose among {', '.join(known)}"
            )
        if len(named) == len(known):
            raise InvalidError("without_signals: no signal would be left", hint="keep at least one signal")
        return named


def _check_range(name: str, value: Any, least: float | None, most: float | None) -> None:
    if least is None or most is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidError(
            f"{name}: {value!r} is not a number from {least:g} to {most:g}", hint="`ricordo config` lists the settings"
        )


def _check_type(name: str, value: Any, type_: Any) -> None:
    choices = get_args(type_)
    if choices and value not in choices:
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise InvalidError(f"{name}: {value!r} is unknown", hint=f"choose {listed}")
    if type_ is bool and not isinstance(value, bool):
        raise InvalidError(f"{name}: {value!r} is neither true nor false")


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of a name.

    Raises:
        InvalidError: there is no such time zone.
    """
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:  # the type depends on what is wrong with the name
        raise InvalidError(f"time_zone: {name!r} is unknown", hint="use a name such as Europe/Berlin") from error


def load(*, environment: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """Return the settings of an entry point: `ricordo.toml`, overridden by `RICORDO_...` variables.

    Raises:
        InvalidError: a value is invalid, or `file` or a variable names an unknown setting.
    """
    values = {name: value for name, (value, _) in given(environment=environment, file=file).items()}
    return _coerced(values) if values else Settings()


def given(*, environment: Mapping[str, str] | None = None, file: Path | None = None) -> dict[str, tuple[Any, str]]:
    """Return the settings that are not at their default: the value as written, and the place where it was written.

    Raises:
        InvalidError: `file` cannot be read, or it or a variable names an unknown setting.
    """
    known = {each.name for each in fields(Settings)}
    found: dict[str, tuple[Any, str]] = {}
    if file is not None and file.exists():
        found |= {name: (value, str(file)) for name, value in _from_file(file, known).items()}
    for variable, value in (os.environ if environment is None else environment).items():
        name = variable.removeprefix(PREFIX).lower()
        if variable == PREFIX + name.upper() and variable not in _OTHER_VARIABLES:
            if name in known:
                found[name] = value, f"${variable}"
            elif near := _nearest(name, known | {each.removeprefix(PREFIX).lower() for each in _OTHER_VARIABLES}):
                hint = f"did you mean ${PREFIX}{near.upper()}?"
                raise InvalidError(f"${variable}: there is no setting {name!r}", hint=hint)
    return found


_OTHER_VARIABLES = frozenset(
    PREFIX + name for name in ("STORE", "OWNER", "CHAT", "USER_ID", "CHAT_ID", "URL", "TOKEN", "TOKEN_FILE", "SOCKET")
) | {f"{PREFIX}EMBEDDER"}


def _nearest(name: str, known: set[str]) -> str | None:
    """Return the setting most similar to a misspelt name; None if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, n=1, cutoff=0.75)), None)


def unknown_setting(name: str, *, where: str = "") -> InvalidError:
    """Return the error for an unknown setting, with the one that was probably meant."""
    near = _nearest(name, {each.name for each in fields(Settings)})
    hint = f"did you mean {near!r}?" if near else "`ricordo config` lists the settings"
    return InvalidError(f"{where}there is no setting {name!r}", hint=hint)


def _from_file(file: Path, known: set[str]) -> dict[str, Any]:
    import tomllib  # most programs have no such file

    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"{file} cannot be read: {error}", hint="it must be TOML") from error
    for name in values.keys() - known:
        raise unknown_setting(name, where=f"{file}: ")
    return values


def shown(name: str, value: Any) -> Any:
    """Return the value of a setting in a form that is safe to show. A key is shown only by its location."""
    if name != "key" or not value or str(value).partition(":")[0] in ("file", "keyring", "env"):
        return value
    return "(not shown)"


def sample() -> str:
    """Return a settings file in which every setting is commented out, with its default and meaning."""
    from textwrap import wrap

    lines = ["# Settings of ricordo. Remove a leading # to change one; `ricordo config` shows what is in force."]
    for each in fields(Settings):
        meaning = wrap(each.metadata["meaning"], 110, initial_indent="# ", subsequent_indent="# ")
        lines += ["", *meaning, f"# {each.name} = {_as_toml(each.default)}"]
    return "\n".join(lines) + "\n"


def change(file: Path, name: str, text: str) -> Any:
    """Write one setting to a file, keeping comments and other settings. Return the parsed value.

    Raises:
        InvalidError: there is no such setting, the value is invalid, or the file cannot be read or written.
    """
    if name not in {each.name for each in fields(Settings)}:
        raise unknown_setting(name)
    before = {each: value for each, (value, _) in given(environment={}, file=file).items()}
    value = getattr(_coerced({**before, name: text}), name)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    fresh = f"{name} = {_as_toml(value)}"
    places = [at for at, line in enumerate(lines) if line.lstrip("# ").partition("=")[0].strip() == name]
    own = [at for at in places if not lines[at].lstrip().startswith("#")]
    if own or places:
        lines[(own or places)[0]] = fresh
    else:
        lines.append(fresh)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidError(f"{file} cannot be written: {error.strerror}", hint="check its permissions") from error
    return value


def _as_toml(value: Any) -> str:
    """Return a value in TOML. Texts and truth values are written as in JSON."""
    import json

    return json.dumps(value, ensure_ascii=False)


def _coerced(values: dict[str, Any]) -> Settings:
    """Convert text to the types of the fields. Imports pydantic late: most programs pass settings in code."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Settings).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidError(f"{name}: {first['msg']}", hint="`ricordo config` lists the settings") from error


def api_key(provider: str) -> str | None:
    """Return the API key of a provider from the environment variable that the provider's own tools use."""
    return os.environ.get(f"{provider.upper()}_API_KEY") or None


def default_location() -> str:
    """Return `$RICORDO_STORE` unchanged (a final slash means a folder), or else a file in the user data folder."""
    if given := os.environ.get("RICORDO_STORE"):
        return given
    from platformdirs import user_data_path

    return str(user_data_path("ricordo", appauthor=False) / "memory.db")


def default_embedder() -> str | None:
    """Return `$RICORDO_EMBEDDER`, or else "stored", the previously used one. `none` means full text only."""
    name = os.environ.get("RICORDO_EMBEDDER") or "stored"
    return None if name == "none" else name


def default_owner() -> str:
    """Return `$RICORDO_OWNER`, or else "me"."""
    return os.environ.get("RICORDO_OWNER") or "me"


def default_chat() -> str | None:
    """Return `$RICORDO_CHAT`, the default group whose memory is used, or else None."""
    return os.environ.get("RICORDO_CHAT") or None
