"""What can be said about the container without a container runtime: its files, and the commands in them."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from tests.interfaces.conftest import RUN

ROOT = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile, with their arguments on one line."""
    text = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def last(name: str) -> str:
    return [rest for each, rest in instructions() if each == name][-1]


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in shlex.split(last("ENV")))


def test_the_base_is_one_version_and_the_user_is_not_root() -> None:
    (version,) = (rest for name, rest in instructions() if name == "ARG")
    assert re.fullmatch(r"PYTHON=3\.\d+\.\d+", version)
    bases = [rest for name, rest in instructions() if name == "FROM"]
    assert len(bases) == 2 and all("/python:${PYTHON}-slim-" in each for each in bases)
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert tuple(map(int, re.findall(r"\d+", version))) >= tuple(map(int, re.findall(r"\d+", needed)))
    assert int(last("USER").partition(":")[0]) >= 1_000
    user = next(number for number, (name, _) in enumerate(instructions()) if name == "USER")
    assert not {"RUN", "COPY", "ADD"} & {name for name, _ in instructions()[user:]}


def test_the_store_is_in_the_volume_and_no_secret_is_in_the_image() -> None:
    assert environment()["RICORDO_STORE"].startswith(last("VOLUME") + "/")
    assert not re.search(r"key|secret|password|token", last("ENV"), re.I)
    copied = {name for each, rest in instructions() if each == "COPY" and "--from" not in rest for name in rest.split()}
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert copied - {".", "./"} == sent and all((ROOT / name).exists() for name in sent)


def test_the_extras_in_the_image_exist() -> None:
    (extras,) = re.findall(r'"\.\[(.*)\]"', (ROOT / "Containerfile").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"server", "mcp"} <= set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_the_compose_file_publishes_to_this_machine_alone_and_keeps_the_store() -> None:
    service = YAML(typ="safe").load(ROOT / "compose.yaml")["services"]["memory"]
    assert (ROOT / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert service["ports"] == [f"127.0.0.1:{last('EXPOSE')}:{last('EXPOSE')}"]
    assert [each.partition(":")[2] for each in service["volumes"]] == [last("VOLUME")]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]


def test_the_compose_file_for_postgresql_makes_the_roles_of_the_guide_and_publishes_to_this_machine_alone() -> None:
    given = YAML(typ="safe").load(ROOT / "compose.postgres.yaml")
    services, roles = given["services"], given["configs"]["roles"]["content"]
    for name in ("memory", "second"):
        assert [each.partition(":")[0] for each in services[name]["ports"]] == ["127.0.0.1"]
        assert services[name]["environment"]["RICORDO_STORE"].startswith("postgresql://ricordo_app@")
        assert services[name]["read_only"] and services[name]["cap_drop"] == ["ALL"]
    guide = (ROOT / "docs" / "how-to" / "use-postgresql.md").read_text("utf-8")
    made, admitted = re.findall(r"```sql\n(.*?)```", guide, re.DOTALL)[:2]
    assert roles.startswith(made)
    assert admitted.strip(";\n") in services["rights"]["command"][-1]


def test_the_command_serves_and_the_health_check_succeeds_then_fails(tmp_path: Path) -> None:
    entry, command = json.loads(last("ENTRYPOINT")), json.loads(last("CMD"))
    assert entry == ["ricordo"] and command[:3] == ["serve", "--host", "0.0.0.0"]
    store = tmp_path / Path(environment()["RICORDO_STORE"]).name
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "RICORDO_STORE": str(store)}
    serving = [sys.executable, "-c", RUN, "serve", "--host", "127.0.0.1", *command[3:], "--port", "0"]
    check: list[Any] = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    with subprocess.Popen([*serving, "--embedder", "none"], env=given, cwd=tmp_path, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        said = ""
        for line in server.stderr:
            said += line.decode()
            if "oken" in said:
                break
        port = re.search(r"http://[\d.]+:(\d+)", said)
        assert port, said
        program = check[2].replace(f":{last('EXPOSE')}/", f":{port[1]}/")
        assert program != check[2]
        healthy = subprocess.run([sys.executable, *check[1:2], program], env=given, capture_output=True, timeout=60)
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)
    assert healthy.returncode == 0, healthy.stderr
    gone = subprocess.run([sys.executable, *check[1:2], program], env=given, capture_output=True, timeout=60)
    assert gone.returncode != 0
