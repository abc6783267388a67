"""Several processes share a folder while one rewrites its files continuously."""

from __future__ import annotations

import pytest

from tests.crash.folder_gc import is_well, together


@pytest.mark.slow
def test_two_processes_append_while_a_third_runs_gc_and_every_line_is_there(tmp_path):
    result = together(tmp_path / "memories", 2)
    assert is_well(result), result
    assert result["acknowledged"] > 0
    assert result["rewritten"] > 0
