"""The runner of mutations, on a library of one function."""

import os
from pathlib import Path

import pytest
from tools.mutants import Copy, Mutation, _users_of, problems, read_list

SOURCE = """from spbn.constants import ONE


def more(x):
    while x < 0:
        x += ONE
    return x + ONE
"""


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "origin"
    (root / "src" / "spbn").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src" / "spbn" / "__init__.py").write_text("")
    (root / "src" / "spbn" / "constants.py").write_text("ONE = 1\n")
    (root / "src" / "spbn" / "adding.py").write_text(SOURCE)
    (root / "tests" / "test_adding.py").write_text(
        "from spbn.adding import more\n\ndef test_more():\n    assert more(2) == 3\n\n"
        "def test_less():\n    assert more(-3) == 1\n"
    )
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['shared: as elsewhere']\n")
    return root


def mutation(before, after, **options):
    return Mutation(before, "area", "src/spbn/adding.py", before, after, ("tests/test_adding.py",), **options)


def test_what_tests_notice_is_killed_and_the_rest_survives(repository, tmp_path, monkeypatch):
    (tmp_path / "copy").mkdir()
    copy = Copy.of(repository, tmp_path / "copy")
    killed = copy.judge(mutation("x + ONE", "x - ONE"), limit=60)
    assert (killed.verdict, killed.by) == ("killed", "tests/test_adding.py::test_more")
    assert copy.judge(mutation("while x < 0", "while x <= 0 and x < 0"), limit=60).verdict == "survived"
    assert copy.judge(mutation("x + ONE", "x - ONE", keyword="nothing"), limit=60).verdict == "error"
    assert copy.judge(mutation("        x += ONE\n", "        x -= ONE\n"), limit=3).verdict == "timeout"
    died = copy.judge(mutation("x + ONE", "__import__('os').kill(__import__('os').getpid(), 9)"), limit=60)
    assert (died.verdict, died.by) == ("killed", "the tests died: SIGKILL")
    assert (copy.root / "src/spbn/adding.py").read_text() == SOURCE  # taken back every time
    assert os.stat(copy.root / "src/spbn/adding.py").st_mtime == pytest.approx(
        os.stat(repository / "src/spbn/adding.py").st_mtime
    )
    assert (repository / "src/spbn/adding.py").read_text() == SOURCE


def test_a_text_must_be_there_exactly_once(repository):
    wrong = [
        mutation("ONE", "TWO"),  # more than once
        mutation("THREE", "TWO"),  # not at all
        mutation("x + ONE", "x + ONE"),  # no change
        mutation("def more(x):", "def more(x:"),  # no Python
        Mutation("no file", "area", "src/spbn/none.py", "a", "b", ()),
        Mutation("no test", "area", "src/spbn/constants.py", "1", "2", ("tests/test_none.py",)),
    ]
    assert len(list(problems(wrong, repository))) == len(wrong)
    assert not list(problems([mutation("x + ONE", "x - ONE")], repository))


def test_what_uses_a_module_is_found_through_others(repository):
    package = repository / "src" / "spbn"
    (package / "user.py").write_text("from spbn import adding\n")
    (package / "stranger.py").write_text("import math\n")
    users = {path.name for path in _users_of(Path("src/spbn/constants.py"), repository)}
    assert users == {"adding.py", "user.py"}


def test_the_list_can_be_read():
    mutations = read_list()
    assert len(mutations) >= 57
    assert {"numerics", "search", "files", "options", "app"} <= {entry.area for entry in mutations}
    assert all(entry.before != entry.after and entry.tests for entry in mutations)
