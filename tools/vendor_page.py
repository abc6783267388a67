"""Fetch the JavaScript libraries of the page from npm, or check the copies (`--check`).

`vendor.toml` lists each with its version, licence, the checksum of its npm package and those of its files. A new
version is entered there by hand; then this script is run once.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "src/ricordo/interfaces/page/static/vendor"


def main() -> int:
    """Fetch all files, or report those that differ from their checksum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the files with their checksums; fetch nothing")
    given = parser.parse_args()
    libraries = tomllib.loads((FOLDER / "vendor.toml").read_text(encoding="utf-8"))
    wrong = [each for name, library in libraries.items() for each in _problems(name, library, fetch=not given.check)]
    print("\n".join(wrong) or "all files have the listed checksums", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


def _problems(name: str, library: dict[str, Any], *, fetch: bool) -> list[str]:
    package = _package(name, library) if fetch else None
    problems = []
    for target, (source, checksum) in library["files"].items():
        file = FOLDER / target
        if package is not None:
            member = package.extractfile(f"package/{source}")
            assert member is not None, source
            file.write_bytes(_without_map(member.read()))
        found = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "missing"
        if found != checksum:
            problems.append(f"{target}: sha256 is {found}, listed is {checksum}")
    return problems


def _package(name: str, library: dict[str, Any]) -> tarfile.TarFile:
    """Download a package with npm and compare it with the checksum of the registry."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--json", f"{library['npm']}@{library['version']}"]
        answer = subprocess.run(command, cwd=folder, check=True, capture_output=True)
        body = (Path(folder) / json.loads(answer.stdout)[0]["filename"]).read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode()
    if found != library["integrity"]:
        raise SystemExit(f"{name}: the package has the checksum {found}, listed is {library['integrity']}")
    return tarfile.open(fileobj=io.BytesIO(body))


def _without_map(text: bytes) -> bytes:
    """Remove the reference to a source map, which a browser would ask for in vain."""
    return b"\n".join(line for line in text.split(b"\n") if not line.startswith(b"//# sourceMappingURL"))


if __name__ == "__main__":
    sys.exit(main())
