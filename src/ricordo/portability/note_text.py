"""The text of a note: which of its lines are facts, what each one says, and how a fact is written as a line.

A fact is an item of a list, or a line of plain text. Headings, front matter, code, tables, quotes and comments are not.
A line may end in a mark that tells which memory it belongs to: a block id of Obsidian, `^` and 12 hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from ricordo.model import Node
from ricordo.portability.visible_text import front_matter, heading_in, hidden_lines, is_furniture, says_private, visible
from ricordo.text.tasks import CANCELLED, closed_by, ending_of_task

_MARK_BYTES = 6
_MARK = re.compile(r"(?:(?:^|\s)\^([0-9a-f]{12}))?(?:(?:^|\s)(\^(?![0-9a-f]{12}$)(?=[\dA-Za-z-]{3})[\dA-Za-z-]+))?$")
"""What a line ends in: the mark, and a block id that somebody else gave the line."""
_BOXES = " xX/<>!?-"
"""The states of a box that Obsidian's themes know; see `closed_by`."""
_ITEM = re.compile(rf"(\s*(?:[-*+]|\d{{1,9}}[.)])\s+)(?:\[([{_BOXES}])\]\s+)?(?=\S)")
_LINK = re.compile(r"(?<![\\!])\[\[([^\[\]|#^]+)(?:[#^][^\[\]|]*)?(?:\|([^\[\]]+))?\]\]")
_TAG = re.compile(r"(?<![\\\w/#&])#([^\W\d_][\w/-]*)")
_ONLY_TAG = re.compile(r"#[^\W\d_][\w/-]*")
_WORD = re.compile(r"\S+")
_DAY = re.compile(r"\d{4}(?:-W?\d{1,2}){1,2}(?!\w)[ \w-]{0,20}")
_FENCE = re.compile(r"\s*(```|~~~|\$\$(?!.*\$\$))")
_MATH = "$$"
_CODE = "`[^`\n]+`"
# A line that begins so is not a fact: headings, quotes, tables, markup, rules, embeds, plugin fields, conflict marks.
_OTHER = re.compile(
    r"\s*(#{1,6}\s|[>|<]|%%|\$\$|!\[|\[[^\]]*\]:|([-*_=])(\s*\2){2,}\s*$|\+[-=+]{2,}\s*$|\^\w|[\w -]{1,40}::)"
)
_INDENT, _CODE_INDENT = 2, 4
"""Columns by which further lines of an item are indented, and those of a block of code in it."""
_FIELD_START = re.compile(r"([\w -]{0,40}):(?=:)")
_BOX = re.compile(rf"\[([{_BOXES}])\]\s+")
_BLOCK = re.compile(rf"\\*(?:{_OTHER.pattern}|{_FENCE.pattern}|{_ITEM.pattern}|{_BOX.pattern})")
_CONFLICT = re.compile(r"^(<{7}|>{7}|\|{7}) |^={7}$", re.MULTILINE)


def mark_of(id: str) -> str:
    """Return the mark of a memory, derived from its id, since ids may contain what an Obsidian block id may not."""
    return blake2b(id.encode("utf-8", "replace"), digest_size=_MARK_BYTES).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A fact in a note.

    Attributes:
        first, end: its lines, counted from 0; `end` is exclusive.
        prefix: what comes before its text: the bullet, and the box of a task.
        box: the mark in the box of a task; None if it is not a task.
        block: the block id that somebody else gave the line, such as "^budget"; it stays behind the mark.
        headings: the headings above it, innermost first.
        of_note: the tags in the front matter of its note, which hold for it and are not repeated in its line.
    """

    first: int
    end: int
    prefix: str
    text: str
    about: tuple[str, ...]
    tags: tuple[str, ...]
    box: str | None
    mark: str | None
    headings: tuple[str, ...]
    block: str = ""
    of_note: frozenset[str] = frozenset()

    @property
    def own_tags(self) -> frozenset[str]:
        """The tags of the line itself, in lower case."""
        return frozenset(tag.casefold() for tag in self.tags)

    @property
    def state(self) -> str:
        """Whether a task is open, "False", or how it was closed; "None" if it is not a task."""
        return "None" if self.box is None else task_state(closed_by(self.box))

    @property
    def hash(self) -> str:
        """The hash of what the line says, without its mark and its place."""
        return _hash(self.text, self.tags, self.state, self.about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A parsed note: its lines without newlines, its facts, and the fields of its front matter.

    Attributes:
        shown, hidden: the lines without comments, and only the comments.
    """

    lines: tuple[str, ...]
    items: tuple[Item, ...]
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conflict: int | None = None
    """The number of the first line with a git conflict, counted from 1; 0 if the note cannot be read."""
    disputed: tuple[str, ...] = ()
    """With a git conflict: the marks of the lines of both sides."""

    @property
    def is_ours(self) -> bool:
        """Whether its facts are read: `ricordo: false` in the front matter excludes a note from the memory."""
        return not says_private(self.fields)


def parse(text: str) -> Note:
    """Read a note."""
    lines = tuple(text.split("\n"))
    if found := _CONFLICT.search(text):
        marks = tuple(mark for line in lines if (mark := _ending(line)[0]))
        return Note(lines=lines, items=(), conflict=text.count("\n", 0, found.start()) + 1, disputed=marks)
    fields, start = front_matter(lines)
    shown = tuple(visible(text).split("\n"))
    items = tuple(replace(each, of_note=note_tags(fields)) for each in _items(shown, start))
    return Note(lines=lines, items=items, shown=shown, hidden=hidden_lines(text), fields=fields)


def fields_of(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of a note's front matter, by name in lower case."""
    return front_matter(text.split("\n"))[0]


def note_tags(fields: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the tags in the front matter of a note, in Obsidian's form and in lower case."""
    return frozenset(as_tag(tag).casefold() for tag in fields.get("tags", ()))


def _items(lines: Sequence[str], start: int) -> Iterator[Item]:
    headings, fence, at = list[tuple[int, str]](), "", start
    while at < len(lines):
        line = lines[at]
        at += 1
        if fence == _MATH and _MATH in line:
            fence = ""
        elif found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif fence or not line.strip():
            continue
        elif heading := heading_in(line):
            headings = [each for each in headings if each[0] < heading[0]]
            headings.append((heading[0], plain(heading[1])[0]))
        elif not _OTHER.match(line) and not ("![" in line and is_furniture(line)):
            end = at
            bullet = _ITEM.match(line)
            while bullet and end < len(lines) and _continues(lines[end]):
                end += 1
            yield _item(lines, at - 1, end, tuple(title for _, title in reversed(headings)))
            at = end


def _continues(line: str) -> bool:
    """Return whether a line continues the item above it: it is indented, and not an item itself."""
    return line.startswith(("  ", "\t")) and bool(line.strip()) and not _ITEM.match(line) and not _OTHER.match(line)


def _item(lines: Sequence[str], first: int, end: int, headings: tuple[str, ...]) -> Item:
    bullet = _ITEM.match(lines[first])
    prefix = bullet[0] if bullet else ""
    whole = "\n".join([lines[first][len(prefix) :], *_outdented(lines[first + 1 : end], prefix)])
    mark, block, whole = _ending(whole)
    text, about, tags = plain(whole)
    return Item(
        first=first,
        end=end,
        prefix=prefix,
        text=text,
        about=about,
        tags=tags,
        box=bullet[2] if bullet else None,
        mark=mark,
        headings=headings,
        block=block,
    )


def task_state(task: Mapping[str, object]) -> str:
    """Return the state of a task by its attributes, in the words of stored hashes."""
    return CANCELLED if task.get(CANCELLED) else str(bool(task.get("done")))


def _outdented(lines: Sequence[str], prefix: str) -> list[str]:
    """Return the further lines of an item without the indentation that they have as such; that of code stays."""
    lines = [line.expandtabs(4).rstrip() for line in lines]
    least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    cut = least if least < len(prefix) + _CODE_INDENT else len(prefix) - len(prefix.lstrip()) + _INDENT
    return [line[cut:] for line in lines]


def plain(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return a text without markup, the names it links to, and its tags. Tags at its end are not part of the text."""
    text = "\n".join(_unguarded(line) for line in text.strip().split("\n"))
    about = linked(text)
    tags = tuple(dict.fromkeys(found[1] for found in _TAG.finditer(re.sub(_CODE, "", text))))
    body = _LINK.sub(lambda found: (found[2] or _file_name(found[1])).strip(), _without_last_tags(text))
    body = _outside_code(_TAG, r"\1", body)
    return body.replace("\\#", "#").replace("\\[[", "[[").replace("\\::", "::").strip(), about, tags


def _outside_code(pattern: re.Pattern[str], put: str, text: str) -> str:
    """Substitute in a text, except in inline code such as `#fff`."""
    parts = re.split(f"({_CODE})", text)
    return "".join(part if place % 2 else pattern.sub(put, part) for place, part in enumerate(parts))


def _without_last_tags(text: str) -> str:
    """Return a text without the tags at its end; a tag at its beginning stays."""
    end = len(text)
    for word in reversed(list(_WORD.finditer(text))):
        if not word.start() or not _ONLY_TAG.fullmatch(word[0]):
            return text[:end].rstrip()
        end = word.start()
    return text


def _file_name(link: str) -> str:
    return link.strip().rpartition("/")[2].removesuffix(".md")


def linked(text: str) -> tuple[str, ...]:
    """Return the names of the people and things that a text links to: those of the notes, except for days and weeks."""
    names = dict.fromkeys(_file_name(found[1]) for found in _LINK.finditer(text))
    return tuple(name for name in names if name and not _DAY.fullmatch(name))


def written(node: Node, *, prefix: str = "- ", stem: str = "", without: Collection[str] = (), block: str = "") -> str:
    """Return a memory as an item, on several lines if its text has several.

    Args:
        prefix: what came before the text of the line until now.
        stem: the name of the note itself, which is not linked.
        without: tags that the line does not repeat, since they are in the front matter of the note, in lower case.
        block: the block id behind the mark.
    """
    body = _escaped(node.content)
    for name in node.about:
        if name.casefold() != stem.casefold():
            body = re.sub(rf"(?<![\w\[]){re.escape(_escaped(name))}(?!\w)", f"[[{name}]]", body, count=1)
    tags = "".join(f" #{tag}" for tag in map(as_tag, node.tags) if tag and tag.casefold() not in without)
    if node.category == "task":
        box = re.search(rf"{_BOX.pattern}$", prefix)
        if box is None or task_state(closed_by(box[1])) != task_state(node.attributes):
            mark = {"done": "x", CANCELLED: "-"}.get(ending_of_task(node), " ")
            prefix = f"{prefix[: box.start()] if box else prefix or '- '}[{mark}] "
    first, *more = [line.rstrip() for line in body.split("\n") if line.strip()]
    lines = [_guarded(first.lstrip(), after=prefix), *(_guarded(line) for line in more)]
    indent = " " * (len(prefix) - len(prefix.lstrip()) + _INDENT)
    return f"{prefix}{f'{chr(10)}{indent}'.join(lines)}{tags} ^{mark_of(node.id)} {block}".rstrip()


def marked(line: str, mark: str) -> str:
    """Return the lines of an item with another mark, before the block id that somebody else gave it."""
    _, block, text = _ending(line)
    return f"{text} ^{mark} {block}".rstrip()


def _ending(line: str) -> tuple[str | None, str, str]:
    """Return the mark that lines end in, the block id of somebody else behind it, and the lines without them."""
    found = _MARK.search(line := line.rstrip())
    return (found[1], found[2] or "", line[: found.start()].rstrip()) if found else (None, "", line)


def _guarded(line: str, *, after: str = "") -> str:
    """Escape a line of a fact that would be read as a table, code, a quote or another item; `after` is its bullet."""
    line = re.sub(r"<(?=!--|[A-Za-z])", r"\\<", re.sub(r"%(?=%)", r"%\\", line))
    if found := _FIELD_START.match(line):
        line = f"{found[1]}\\:{line[found.end() :]}"
    is_text = after and not line.startswith("\\") and not _OTHER.match(after + line) and not _BOX.match(line)
    text = line.lstrip()
    return line if is_text or not _BLOCK.match(text) else f"{line[: len(line) - len(text)]}\\{text}"


def _unguarded(line: str) -> str:
    text = line.lstrip()
    if text.startswith("\\") and _BLOCK.match(text):
        line = line[: len(line) - len(text)] + text[1:]
    return re.sub(r"\\<(?=!--|[A-Za-z])", "<", re.sub(r"%\\(?=%)", "%", line))


def _node_state(node: Node) -> str:
    return task_state(node.attributes) if node.category == "task" else "None"


def state_of(node: Node) -> str:
    """Return a hash of what a line would say about a memory."""
    return _hash(node.content, node.tags, _node_state(node), ())


def says(item: Item, node: Node) -> bool:
    """Return whether a line says what the memory says."""
    tags = frozenset(as_tag(tag).casefold() for tag in node.tags)
    mine = " ".join(item.text.split()), item.own_tags - item.of_note, _without_task(item.state)
    return mine == (" ".join(node.content.split()), tags - item.of_note, _without_task(_node_state(node)))


def _without_task(state: str) -> str:
    """Return the state of an item; what is no task counts as an open one, since it may lack its box."""
    return "False" if state == "None" else state


def _hash(text: str, tags: Sequence[str], state: str, about: Sequence[str]) -> str:
    said = "\x1f".join([" ".join(text.split()), *sorted(tags), state, *sorted(about)])
    return blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _escaped(text: str) -> str:
    """Escape text that would be read as a tag or a link."""
    return _outside_code(_TAG, r"\\#\1", text).replace("[[", "\\[[")


def as_tag(tag: str) -> str:
    """Return a tag in Obsidian's form: without spaces and punctuation."""
    return re.sub(r"[^\w/-]+", "-", tag).strip("-")
