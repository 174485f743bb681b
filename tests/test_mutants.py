"""The runner of mutations, on a library of one module; and the list, on this one."""

import os
from pathlib import Path

import pytest
from tools.mutants import ROOT, Copy, Mutation, problems, read_list
from tools.mutated_source import Source, tokens, users_of

SOURCE = '''"""Numbers that are larger."""

from spbn.constants import ONE

STEPS = {"more": 1}


def more(x):
    while x < 0:
        x += ONE
    return x + ONE


@decorated(by="this")
class Adder:
    start = 1

    def twice(self, x):
        def inner(y):  # nobody sees it
            return more(y)

        if x:
            return inner(
                inner(x),
            )
        return x * 2 + x * 2
'''


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "origin"
    (root / "src" / "spbn").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src" / "spbn" / "__init__.py").write_text("")
    (root / "src" / "spbn" / "constants.py").write_text("ONE = 1\n")
    (root / "src" / "spbn" / "adding.py").write_text(SOURCE.replace('@decorated(by="this")\n', ""))
    (root / "tests" / "test_adding.py").write_text(
        "from spbn.adding import more\n\ndef test_more():\n    assert more(2) == 3\n\n"
        "def test_less():\n    assert more(-3) == 1\n"
    )
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['shared: as elsewhere']\n")
    return root


def mutation(before, after, inside="more", **options):
    return Mutation(before, "area", before, after, ("tests/test_adding.py",), inside, **options)


@pytest.mark.slow
def test_what_tests_notice_is_killed_and_the_rest_survives(repository, tmp_path):
    (tmp_path / "copy").mkdir()
    copy = Copy.of(repository, tmp_path / "copy")
    adding, original = copy.root / "src/spbn/adding.py", repository / "src/spbn/adding.py"
    text = original.read_text()
    try:
        killed = copy.judge(mutation("x + ONE", "x - ONE"), limit=60)
        assert (killed.verdict, killed.by) == ("killed", "tests/test_adding.py::test_more")
        later = copy.judge(mutation("x + ONE", "x - ONE"), limit=60, killer="tests/test_adding.py::test_less")
        assert (later.verdict, later.by) == ("killed", "tests/test_adding.py::test_less")
        for killer in ("tests/test_adding.py::test_none", "tests/test_none.py::test_none"):
            found = copy.judge(mutation("x + ONE", "x - ONE"), limit=60, killer=killer)
            assert found.by == "tests/test_adding.py::test_more"
        blind = mutation("x < 0", "x <= 0 and x < 0")
        assert copy.judge(blind, limit=60).verdict == "survived"
        assert copy.judge(mutation("x + ONE", "x - ONE", keyword="nothing"), limit=60).verdict == "error"
        assert copy.judge(mutation("x += ONE", "x -= ONE"), limit=3).verdict == "timeout"
        died = copy.judge(
            mutation("x + ONE", "__import__('os').kill(__import__('os').getpid(), 9)"), limit=60
        )
        assert (died.verdict, died.by) == ("killed", "the tests died: SIGKILL")
    finally:
        copy.runner.close()
    assert adding.read_text() == original.read_text() == text  # taken back every time
    assert os.stat(adding).st_mtime == pytest.approx(os.stat(original).st_mtime)


def changed(folder, *arguments, text=SOURCE, **options):
    """Return the new text of the one module of a library, after a replacement."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "adding.py").write_text(text)
    path, new = Source(folder).with_code(*arguments, **options)
    assert path == Path("src/adding.py")
    return new


@pytest.mark.parametrize(
    ("inside", "before", "after", "old", "new"),
    [
        ("more", "x+ONE", "x - ONE", "return x + ONE", "return x - ONE"),
        ("more", "x += ONE; return x", "return x", "x += ONE\n    return x + ONE", "return x + ONE"),
        ("Adder.twice", "inner(inner(x))", "x", "inner(\n                inner(x),\n            )", "x"),
        ("Adder.twice.inner", "y):  # whatever\n return more", "y):return less", "# nobody", "# nobody"),
        ("Adder", "start = 1", "start = 2", "start = 1", "start = 2"),
        ("Adder", "decorated(by='this')", "undecorated", '@decorated(by="this")', "@undecorated"),
        ("", "{'more':1}", "{}", '{"more": 1}', "{}"),
    ],
)
def test_code_is_found_however_it_is_formatted(inside, before, after, old, new, tmp_path):
    found = changed(tmp_path, inside, before, after)
    expected = SOURCE.replace(old, new)
    if "less" in after:
        expected = expected.replace("(y):  # nobody sees it\n            return more", "(y):return less")
    assert found == expected


def test_new_lines_are_indented_like_the_first(tmp_path):
    found = changed(tmp_path, "more", "x += ONE", "if ONE:\n    x += 2")
    assert "    while x < 0:\n        if ONE:\n            x += 2\n    return" in found


def test_a_function_may_be_defined_under_a_condition(tmp_path):
    text = "if True:\n    def more(x):\n        return (  # anew\n            x + ONE\n        )\n"
    assert changed(tmp_path, "more", "return (x + ONE)", "return 0", text=text).endswith("return 0\n")


def test_one_of_several_places_is_chosen(tmp_path):
    second = changed(tmp_path, "Adder.twice", "x * 2", "x", nth=2)
    assert second == SOURCE.replace("x * 2 + x * 2", "x * 2 + x")
    (tmp_path / "src" / "copy.py").write_text(SOURCE)
    with pytest.raises(ValueError, match=r"more has 'x \+ ONE' 2 times: src/adding.py, src/copy.py"):
        changed(tmp_path, "more", "x + ONE", "x")
    assert changed(tmp_path, "more", "x + ONE", "x", module="/adding.py") == SOURCE.replace("x + ONE", "x")


def test_tokens_are_words_numbers_text_and_signs():
    code = 'f(a.b, 1.5e-3, 0x1F, .5) ** x[1:2] -> r"\\d" != """say "it" """, # no\n'
    words = [token.word for token in tokens(code)]
    assert words == [
        *("f", "(", "a", ".", "b", ",", "1.5e-3", ",", "0x1F", ",", ".5", ")", "**"),
        *("x", "[", "1", ":", "2", "]", "->", repr(r"\d"), "!=", repr('say "it" '), ","),
    ]
    assert [code[token.start : token.stop] for token in tokens(code)][6] == "1.5e-3"
    with pytest.raises(ValueError, match="not Python"):
        tokens("a ? b")


def test_what_does_not_fit_is_said(repository):
    wrong = [
        mutation("ONE", "TWO"),  # more than once
        mutation("THREE", "TWO"),  # not at all
        mutation("x + ONE", "x  +  ONE"),  # no change
        mutation("more(x):", "more(x:"),  # no Python
        mutation("x + ONE", "x - ONE", "least"),  # no function
        mutation("x + ONE", "x - ONE", module="/other.py"),
        mutation("x * 2", "x", "Adder.twice", nth=3),
        Mutation("no file", "area", "a", "b", (), file="src/spbn/none.js"),
        Mutation("no test", "area", "1", "2", ("tests/test_none.py",), file="src/spbn/constants.py"),
    ]
    found = list(problems(wrong, repository))
    assert len(found) == len(wrong), found
    assert not list(problems([mutation("x + ONE", "x - ONE")], repository))


def test_what_uses_a_module_is_found_through_others(repository):
    package = repository / "src" / "spbn"
    (package / "user.py").write_text("from spbn import adding\n")
    (package / "stranger.py").write_text("import math\n")
    users = {path.name for path in users_of(Path("src/spbn/constants.py"), Source(repository))}
    assert users == {"adding.py", "user.py"}


def test_the_list_can_be_read():
    mutations = read_list()
    assert len(mutations) >= 400
    assert {"numerics", "search", "files", "options", "app"} <= {entry.area for entry in mutations}
    assert all(entry.before != entry.after and entry.tests for entry in mutations)
    assert not any(entry.file.endswith(".py") for entry in mutations)  # these have functions


@pytest.mark.slow
def test_every_mutation_fits_the_code():
    """If a function is gone, its mutation breaks what has taken its place, or goes as well."""
    assert list(problems(read_list(), ROOT)) == []
