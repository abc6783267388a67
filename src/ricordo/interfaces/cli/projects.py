"""The project of a coding agent, and whether it is private."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

IGNORE_FILE = ".ricordoignore"

_REMOTE = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^@/\s]*@)?([^:/\s]+)(?::\d+(?=/))?[:/]+(.+?)/?(?:\.git)?/?\Z", re.IGNORECASE
)
_MOST_CHARS = 400


def project_of(folder: Path) -> str:
    """Return the name of a folder's project: its git remote without protocol, user and password, such as
    "github.com/ann/shop"; without a remote, the root of the repository; without a repository, the folder.
    """
    folder = folder.expanduser().resolve()
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    return (_remote(root) or str(root))[:_MOST_CHARS]


def _remote(root: Path) -> str:
    """Return the URL of the remote "origin", else of the first remote; "" if there is none."""
    config = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        config.read_string((_git_folder(root) / "config").read_text(encoding="utf-8", errors="replace"))
    except (OSError, configparser.Error):
        return ""
    remotes = [name for name in config.sections() if name.startswith("remote ")]
    chosen = 'remote "origin"' if 'remote "origin"' in remotes else next(iter(remotes), "")
    found = _REMOTE.match(config.get(chosen, "url", fallback="") or "") if chosen else None
    return f"{found[1].lower()}/{found[2]}" if found and found[1].strip(".") else ""


def _git_folder(root: Path) -> Path:
    """Return the folder with the git configuration. In a worktree, `.git` is a file that names it."""
    git = root / ".git"
    if git.is_dir():
        return git
    pointed = root / git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
    common = pointed / "commondir"
    return pointed / common.read_text(encoding="utf-8").strip() if common.is_file() else pointed


def is_private(folder: Path, *, home: Path) -> bool:
    """Return whether a `.ricordoignore` in a folder, its parents or the home folder makes the folder private.

    A file without patterns makes its complete folder private. A pattern is a relative path with `*` and `?`; one that
    begins with `!` makes a folder public that an earlier pattern made private.
    """
    folder = folder.expanduser().resolve()
    for above in dict.fromkeys((folder, *folder.parents, home)):
        file = above / IGNORE_FILE
        try:
            lines = [line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines()]
        except OSError:
            if os.path.isfile(file):  # noqa: PTH113  # False, not an error, in a folder that cannot be read
                return True  # the file cannot be read: assume private
            continue
        if _matches([line for line in lines if line and not line.startswith("#")], folder, above):
            return True
    return False


def _matches(patterns: list[str], folder: Path, above: Path) -> bool:
    if not folder.is_relative_to(above):
        return any(folder.match(each) for each in patterns if not each.startswith("!"))
    if not patterns:
        return True
    hit = False
    for pattern in patterns:
        wanted = pattern.removeprefix("!").strip("/")
        if any(fnmatch(path, wanted) for path in _paths(folder, above)):
            hit = not pattern.startswith("!")
    return hit


def _paths(folder: Path, above: Path) -> Iterator[str]:
    """Yield the relative path and the name of a folder and of each parent below `above`."""
    yield "."
    relative = folder.relative_to(above)
    for each in (relative, *relative.parents):
        if each.name:
            yield str(each)
            yield each.name
    if not relative.parts:
        yield "*"


def folder_of_slug(slug: str) -> Path | None:
    """Return the folder whose path has this slug: every character except letters and digits is "-". None if missing."""
    wanted = slug.strip("-")

    def below(folder: Path, rest: str) -> Path | None:
        if not rest:
            return folder
        try:
            names = sorted(each.name for each in folder.iterdir() if each.is_dir())
        except OSError:
            return None
        for name in names:
            plain = re.sub(r"[^A-Za-z0-9]", "-", name).strip("-")
            if plain and (rest == plain or rest.startswith(f"{plain}-")):
                found = below(folder / name, rest[len(plain) :].lstrip("-"))
                if found is not None:
                    return found
        return None

    return below(Path("/"), wanted)
