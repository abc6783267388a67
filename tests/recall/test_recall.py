"""Recall tests: what the files can say, what finds faults, and where they run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ricordo import InvalidError, Memory, NotFoundError
from ricordo.interfaces.cli.app import main
from ricordo.testing import Report, load, run
from ricordo.testing.cases import add_case

Command = Callable[..., tuple[int, str]]
CONVERSATION = Path(__file__).with_name("conversation.recall.yaml")
STORY = """
memories:
  - {said: "I moved to Lisbon in May", at: 2026-05-02}
  - {fact: "Anna is allergic to walnuts", about: Anna, at: 2026-06-01}
  - {fact: "The spare key is under the pot", for: ben}
  - Bob plays the cello
embedder: none
cases:
"""


def write(folder: Path, cases: str, *, head: str = STORY) -> Path:
    path = folder / "story.recall.yaml"
    path.write_text(head + cases, encoding="utf-8")
    return path


async def outcome(folder: Path, case: str) -> tuple[str, ...]:
    report = await run(load(write(folder, f"  - {case}\n")))
    return report.outcomes[0].failures


# our own gate


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["words in context", "person", "kind of answer", "date", "asks", "assistant"])
async def test_a_broken_signal_is_found(signal: str) -> None:
    """LoCoMo has no assistant, and its mean recall moves by .001 without "asks"."""
    assert not await failed({"without_signals": signal}) <= await failed_with_every_signal()


async def failed(configuration: dict[str, str]) -> frozenset[str]:
    report = await run(load(CONVERSATION), configuration)
    return frozenset(each.case.ask for each in report.outcomes if not each.passed)


_found: list[frozenset[str]] = []


async def failed_with_every_signal() -> frozenset[str]:
    """It is the same for every signal, so it is asked once."""
    if not _found:
        _found.append(await failed({}))
    return _found[0]


# what a case can say


@pytest.mark.parametrize(
    "case",
    [
        '{ask: "What is Anna allergic to?", must: WALNUTS, first: walnuts, must_not: [peanut], may: []}',
        '{ask: "What is the boiling point of mercury?", silent: true}',
        '{ask: "What is Anna allergic to?", silent: false}',
        '{ask: "What is Anna allergic to?", in: context, must: walnuts}',
        '{ask: "What happened in May 2026?", first: Lisbon, limit: 1}',
        '{ask: "Where is the spare key?", for: ben, must: pot}',
        '{ask: "Where is the spare key?", must_not: pot}',
        '{ask: "Who plays the cello?", must: Bob}',
        '{ask: "What is Anna allergic to?", as_of: 2026-05-03, must_not: walnuts}',
    ],
)
async def test_a_right_expectation_passes(case: str, tmp_path: Path) -> None:
    assert await outcome(tmp_path, case) == ()


@pytest.mark.parametrize(
    ("case", "failure"),
    [
        ('{ask: "What is Anna allergic to?", must: nuts and bolts}', "must: “nuts and bolts” is not among the 5 best"),
        (
            '{ask: "Anna moved to Lisbon, allergic", first: Lisbon}',
            "first: “Lisbon” is not first; “Anna is allergic to walnuts” is",
        ),
        ('{ask: "What is Anna allergic to?", must_not: walnuts}', "must_not: “walnuts” is hit 1: “Anna is allergic"),
        (
            '{ask: "What is Anna allergic to?", silent: true}',
            "silent: “Anna is allergic to walnuts” was found relevant",
        ),
        ('{ask: "What is the boiling point of mercury?", silent: false}', "silent: nothing was found relevant"),
        ('{ask: "What is Anna allergic to?", may: [Lisbon]}', "may: “Anna is allergic to walnuts” is found besides"),
        (
            '{ask: "Anna moved to Lisbon, allergic", must: Lisbon, limit: 1}',
            "must: “Lisbon” is not among the 1 best; it is hit 2",
        ),
    ],
)
async def test_a_wrong_expectation_fails_and_says_what_was_found(case: str, failure: str, tmp_path: Path) -> None:
    failures = await outcome(tmp_path, case)
    assert len(failures) == 1
    assert failures[0].startswith(failure)


async def test_a_forgotten_fact_is_not_found(tmp_path: Path) -> None:
    head = "memories:\n  - {fact: the code is 4711}\n  - {forget: '4711'}\nembedder: none\ncases:\n"
    path = write(tmp_path, '  - {ask: "What is the code?", must_not: "4711"}\n', head=head)
    assert (await run(load(path))).passed == 1


async def test_a_store_stays_as_it_is(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        await memory.remember("Anna is allergic to walnuts")
        node = (await memory.list()).nodes[0]
    path = write(tmp_path, '  - {ask: "What is Anna allergic to?", first: walnuts}\n', head="store: me.db\ncases:\n")
    assert (await run(load(path))).passed == 1
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        assert (await memory.list()).nodes == (node,)


# mistakes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cases: [{ask: x, must: y}]", "the file: either `store` or `memories` is required, not both"),
        (
            "store: a.db\nmemories: [{fact: x}]\ncases: [{ask: x, must: y}]",
            "either `store` or `memories` is required, not both",
        ),
        ("store: a.db\ncases: []", "cases: "),
        (
            "store: a.db\ncases: [{ask: x}]",
            "cases.1: at least one of `must`, `first`, `must_not`, `may` and `silent` is required",
        ),
        ("store: a.db\ncases: [{aks: x, must: y}]", "cases.1.ask: field required"),
        ("store: a.db\ncases: [{ask: x, must: y, amongst: 3}]", "cases.1.amongst: there is no such field"),
        ("store: a.db\ncases: [{ask: x, must: y, silent: true}]", "cases.1: silent: cannot be combined with"),
        (
            "memories: [{said: x, fact: y}]\ncases: [{ask: x, must: y}]",
            "memories.1: exactly one of `said`, `fact` and `forget` is required",
        ),
        ("store: [", "not valid YAML"),
        ("- 1", "not a mapping of fields"),
    ],
)
def test_a_mistake_names_the_field(text: str, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path, text, head="")
    with pytest.raises(InvalidError) as error:
        load(path)
    assert problem in error.value.message
    assert str(path) in error.value.message


async def test_a_missing_file_store_or_setting_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no file"):
        load(tmp_path / "none.recall.yaml")
    path = write(tmp_path, "  - {ask: x, must: y}\n", head="store: none.db\ncases:\n")
    with pytest.raises(NotFoundError, match="there is no memory at"):
        await run(load(path))
    with pytest.raises(InvalidError, match="no setting 'fusoin'"):
        await run(load(write(tmp_path, "  - {ask: x, must: y}\n")), {"fusoin": "rrf"})


async def test_words_in_two_memories_cannot_be_forgotten(tmp_path: Path) -> None:
    head = "memories: [{fact: tea is hot}, {fact: tea is green}, {forget: tea}]\nembedder: none\ncases:\n"
    with pytest.raises(InvalidError, match=r"memories\.3\.forget: 'tea' is in 2 memories"):
        await run(load(write(tmp_path, "  - {ask: x, must: y}\n", head=head)))


# recording


def test_a_recorded_case_keeps_the_comments(tmp_path: Path) -> None:
    path = write(tmp_path, '  - {ask: "Where do I live?", must: Lisbon}  # the first complaint\n')
    add_case(path, {"ask": "What is Anna allergic to?", "must": ["walnuts"]})
    assert "# the first complaint" in path.read_text(encoding="utf-8")
    assert [case.must for case in load(path).cases] == [("Lisbon",), ("walnuts",)]


def test_an_invalid_case_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path, '  - {ask: "Where do I live?", must: Lisbon}\n')
    before = path.read_bytes()
    with pytest.raises(InvalidError, match="at least one of `must`"):
        add_case(path, {"ask": "And?"})
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


# the command line


@pytest.fixture
def ricordo(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        return code, capsys.readouterr().out

    return call


def test_the_command_reports_failures_by_its_exit_status(tmp_path: Path, ricordo: Command) -> None:
    good = write(tmp_path, '  - {ask: "What is Anna allergic to?", must: walnuts}\n')
    code, text = ricordo("test", str(good))
    assert (code, "1 of 1 passed" in text) == (0, True)
    bad = write(tmp_path, '  - {ask: "What is Anna allergic to?", must: peanuts}\n')
    code, text = ricordo("--json", "test", str(bad), "--junit", str(tmp_path / "report.xml"))
    found = json.loads(text)
    assert (code, found["failed"], found["reports"][0]["cases"][0]["passed"]) == (1, 1, False)
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")


def test_a_report_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path, '  - {ask: "What is Anna allergic to?", must: walnuts}\n')
    assert main(["test", str(good), "--junit", str(tmp_path / "none" / "report.xml")]) == 2
    assert "junit:" in capsys.readouterr().err


def test_a_matrix_shows_configurations_side_by_side(tmp_path: Path, ricordo: Command) -> None:
    path = write(tmp_path, '  - {ask: "What is Anna allergic to?", must: walnuts}\n')
    code, text = ricordo("test", str(path), "--matrix", "embedder=none,hashing", "--matrix", "fusion=score,rrf")
    assert code == 0
    assert all(f"embedder={name}" in text for name in ("none", "hashing"))
    assert "fusion=rrf" in text


def test_a_complaint_becomes_a_case(tmp_path: Path, ricordo: Command) -> None:
    store, path = tmp_path / "me.db", tmp_path / "mine.recall.yaml"
    common = ("--store", str(store), "--embedder", "none")
    assert ricordo(*common, "remember", "Anna is allergic to walnuts")[0] == 0
    asked = "What is Anna allergic to?"
    assert ricordo(*common, "test", str(path), "--record", asked, "--must", "walnuts")[0] == 0
    assert ricordo("test", str(path))[0] == 0


# pytest


def test_the_plugin_runs_in_a_project_of_its_own(tmp_path: Path) -> None:
    cases = '  - {ask: "What is Anna allergic to?", must: walnuts}\n  - {ask: "Where do I live?", must: Porto}\n'
    write(tmp_path, cases)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "must: “Porto” is not among the 5 best" in done.stdout


def test_pytest_shows_a_mistake_in_a_file_without_a_traceback(tmp_path: Path) -> None:
    write(tmp_path, "  - {aks: x, must: y}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "cases.1.ask: field required" in done.stdout
    assert "in load" not in done.stdout


def test_the_plugin_imports_little_in_projects_without_recall_tests() -> None:
    program = "import pytest, sys; import ricordo.testing.plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"pydantic", "numpy", "ricordo.memory", "ricordo.testing.cases"} & set(done.stdout.split()) == set()


def test_a_report_counts_what_passed() -> None:
    assert Report(path=Path("x"), outcomes=()).passed == 0
