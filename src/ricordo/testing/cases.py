"""The format of recall test files: reading them, and adding a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ricordo.errors import InvalidError, NotFoundError, UnavailableError
from ricordo.model import Role, Trust

_HINT = "docs/how-to/test-recall.md describes the format"


def _listed(value: object) -> object:
    return [] if value is None else value if isinstance(value, list) else [value]


def _text_of_time(value: object) -> object:
    """Return a date or time that YAML has parsed as its original text."""
    return value.isoformat() if hasattr(value, "isoformat") else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Moment = Annotated[str, BeforeValidator(_text_of_time)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Whose(_Part):
    """The caller of a step or a case."""

    owner: str = "me"
    chat: str | None = None
    trust: Trust = "user"


def _whose(value: object) -> object:
    return {"owner": value} if isinstance(value, str) else value


Caller = Annotated[Whose, BeforeValidator(_whose)]


class Step(_Part):
    """One step that fills a temporary store: a message, a fact, or the forgetting of a fact. Text alone is a fact.

    Attributes:
        forget: words of the one fact to forget.
    """

    said: str | None = None
    fact: str | None = None
    forget: str | None = None
    by: str | None = None
    role: Role = "user"
    session: str | None = None
    about: Texts = ()
    tags: Texts = ()
    expires: Moment | None = None
    at: Moment | None = None
    whose: Caller = Field(default=Whose(), alias="for")

    @model_validator(mode="before")
    @classmethod
    def _fact(cls, value: object) -> object:
        return {"fact": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_kind(self) -> Step:
        if sum(each is not None for each in (self.said, self.fact, self.forget)) != 1:
            raise ValueError("exactly one of `said`, `fact` and `forget` is required")
        return self


class Case(_Part):
    """A question, and the requirements for its answer.

    Attributes:
        must, first, must_not, may: texts that memories contain, ignoring case; `id:...` is the beginning of an id. With
            `may`, only the listed memories may be found.
        silent: True requires that nothing is found relevant; False, that something is.
    """

    ask: str
    must: Texts = ()
    first: str | None = None
    must_not: Texts = ()
    may: Texts | None = None
    silent: bool | None = None
    at: Literal["search", "context"] = Field(default="search", alias="in")
    as_of: Moment | int | None = None
    limit: int | None = Field(default=None, ge=1, le=1_000)
    whose: Caller = Field(default=Whose(), alias="for")

    @model_validator(mode="after")
    def _asks_something(self) -> Case:
        if not (self.must or self.first or self.must_not) and self.may is None and self.silent is None:
            raise ValueError("at least one of `must`, `first`, `must_not`, `may` and `silent` is required")
        if self.silent and (self.must or self.first):
            raise ValueError("silent: cannot be combined with `must` or `first`")
        return self


class Suite(_Part):
    """A file of cases, and the memory they are asked of: an existing store, or the memories of a temporary one.

    Attributes:
        embedder: as in `Memory.open`; None: the embedder of the store, or else the default.
        now: the time at which the questions are asked; None: the current time.
        limit: the number of hits of a search that count.
    """

    path: Path = Field(default=Path(), exclude=True)
    store: str | None = None
    memories: tuple[Step, ...] = ()
    embedder: str | None = None
    settings: Mapping[str, Any] = {}
    now: Moment | None = None
    limit: int = Field(default=5, ge=1, le=1_000)
    cases: tuple[Case, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_memory(self) -> Suite:
        if (self.store is None) == (not self.memories):
            raise ValueError("either `store` or `memories` is required, not both")
        return self


def load(path: str | Path) -> Suite:
    """Read a file of recall tests.

    Raises:
        NotFoundError: the file does not exist.
        InvalidError: the file is not YAML, or a field is unknown, missing or invalid; the message names it.
        UnavailableError: the package that reads YAML is not installed.
    """
    path = Path(path)
    given = _read(path)
    if not isinstance(given, Mapping):
        raise InvalidError(f"{path}: the file is not a mapping of fields", hint=_HINT)
    try:
        return Suite.model_validate({**given, "path": path})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in first["loc"]) or "the file"
        raise InvalidError(f"{path}: {place}: {_said(first)}", hint=_HINT) from None


def _said(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "extra_forbidden":
        return "there is no such field"
    if problem["type"] == "model_type":
        return "this is not a mapping of fields"
    text = str(problem["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def add_case(path: str | Path, case: Mapping[str, Any], *, store: str | None = None) -> None:
    """Add a case to a file, keeping its comments. If the file does not exist, create it for a store.

    Raises:
        InvalidError: the file or the case is invalid; the file is not changed.
    """
    path = Path(path)
    try:
        given = _read(path)
        load(path)
    except NotFoundError:
        if store is None:
            raise
        given = {"store": store, "cases": []}
    given["cases"].append(dict(case))
    _check(path, given)
    with path.with_name(f"{path.name}.new").open("w", encoding="utf-8") as file:
        _yaml().dump(given, file)
    path.with_name(f"{path.name}.new").replace(path)


def _check(path: Path, given: Mapping[str, Any]) -> None:
    try:
        Suite.model_validate({**given, "path": path})
    except ValidationError as error:
        raise InvalidError(f"the case: {_said(error.errors(include_url=False)[0])}", hint=_HINT) from None


def _read(path: Path) -> Any:
    from_yaml = _yaml()
    from ruamel.yaml.error import YAMLError

    try:
        return from_yaml.load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"{path} cannot be read: {error}") from error
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise InvalidError(f"{path}{line}: the file is not valid YAML: {getattr(error, 'problem', error)}") from None


def _yaml() -> Any:
    try:
        from ruamel.yaml import YAML
    except ImportError:
        raise UnavailableError(
            "reading recall tests needs ruamel.yaml, which is not installed", hint='pip install "ricordo[test]"'
        ) from None
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 120
    return yaml


def found_in(expected: str, texts: Sequence[tuple[str, str]]) -> list[int]:
    """Return the positions of the memories, pairs (id, text), that match an expectation."""
    if expected.startswith("id:"):
        return [
            place for place, (id, _) in enumerate(texts) if id.startswith(expected[3:]) or id.endswith(expected[3:])
        ]
    wanted = " ".join(expected.casefold().split())
    return [place for place, (_, text) in enumerate(texts) if wanted in " ".join(text.casefold().split())]
