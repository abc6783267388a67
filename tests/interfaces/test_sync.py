"""The command that exchanges commits with another device."""

from __future__ import annotations

from tests.interfaces.conftest import Cli


def test_two_stores_exchange_through_a_folder_and_say_what_moved(cli: Cli) -> None:
    shared = cli.folder / "shared"
    shared.mkdir()
    cli("remember", "I live in Rome")
    assert "1 commit would be sent, 0 would be received." in cli("sync", str(shared), "--dry-run").out
    assert "1 commit sent, 0 received." in cli("sync", str(shared)).out
    first, cli.store = cli.store, cli.folder / "other.db"
    cli("remember", "I live in Paris")
    assert "2 commits sent, 1 received, 1 to review." in cli("sync", str(shared)).out
    cli.store = first
    found = cli("sync", str(shared), "--json").json
    assert (found["received"], found["to_review"], found["left_out"]) == (2, 1, [])
    assert "0 commits sent, 0 received." in cli("sync", str(shared)).out
    next(shared.rglob("*.jsonl")).with_name("torn.jsonl").write_bytes(b"{")
    assert "Left out (1)" in cli("sync", str(shared)).out


def test_two_stores_exchange_directly(cli: Cli) -> None:
    cli("remember", "I live in Rome")
    first, cli.store = cli.store, cli.folder / "other.db"
    assert "0 commits sent, 1 received." in cli("sync", str(first)).out
    assert [node["content"] for node in cli("list", "--json").json["nodes"]] == ["I live in Rome"]


def test_there_must_be_something_to_exchange_with(cli: Cli) -> None:
    refused = cli("sync", str(cli.folder / "nowhere"))
    assert refused.status == 2
    assert "create the folder" in refused.err


def test_one_call_brings_the_projects_and_a_key_hides_them(cli: Cli) -> None:
    shared = cli.folder / "shared"
    shared.mkdir()
    key = cli.folder / "key.txt"
    key.write_text("one two three\n", encoding="utf-8")
    cli("remember", "I live in Rome")
    cli("add", "We deploy on Fridays", "--chat", "shop")
    cli("add", "The site is slow", "--chat", "site")
    told = cli("sync", str(shared), "--key", f"file:{key}", "--only-chat", "shop").out
    assert "2 commits sent, 0 received. Your memory and 1 chat." in told
    assert not any(b"Fridays" in file.read_bytes() for file in shared.rglob("*") if file.is_file())
    cli.store = cli.folder / "other.db"
    assert cli("sync", str(shared)).status == 5
    refused = cli("sync", str(shared), "--key", "another key")
    assert (refused.status, "the key is wrong" in refused.err) == (5, True)
    assert cli("sync", str(shared), "--key", f"file:{key}", "--json").json["chats"] == ["shop"]
    found = cli("list", "--type", "any", "--chat", "shop", "--json").json["nodes"]
    assert sorted(node["content"] for node in found) == ["I live in Rome", "We deploy on Fridays"]


def test_the_log_calls_a_merge_of_two_devices_automatic(cli: Cli) -> None:
    shared, other = cli.folder / "shared", ("--store", str(cli.folder / "other.db"))
    shared.mkdir()
    for store in ((), other):
        cli("remember", "I swim at Clube Fluvial", *store)
        cli("sync", str(shared), *store)
    log = cli("log", *other).out
    assert "(automatic)" in log and "(erased)" not in log
