"""The English of messages, help, pages and docstrings: what reads as if translated word for word."""

import ast
import re
from pathlib import Path

import pytest

import spbn

SOURCE = Path(spbn.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*") if path.suffix in (".py", ".js", ".html"))
#: What not to write, and what to write instead.
CONSTRUCTIONS = {
    r"(?<!there )\bis no (text|number|\w+ file|file|folder|frame|column of)\b": "is not a ...",
    r"that there are not\b": "unknown ...",
    r"\bat most so (many|much)\b": "maximum number of ...",
    r"\bone (row|density|line|file|number) an? (model|node|row|series|arc|column)\b": "one ... per ...",
    r"\b(node|graph|figures?|numbers?) behind\b|\bbehind (PC|which)\b": "after PC",
    r"\bstands? more than once\b": "appears more than once",
    r"\bnothing may be written to\b": "no permission to write to ...",
    r"\bdraws worth\b": "draws (effective sample size ...)",
    r"\bis not unknown\b": "was observed",
    r"\bnothing is known of\b": "prior",
    r"\bseen from the one who\b": "client-side",
    r"\bthose that have an? (greater|smaller)\b": "rescale",
    r"\bof which (the logarithms|nothing depends)\b": "whose ...; without ...",
    r"\bfrom where on\b": "beyond",
    r"\bfor those who have only\b": "partial",
    r"\b(is|what is) worth (knowing|saying)\b": "note",
    r"\bwhat is (there|known) (says?|alone)\b": "evidence",
    r"\bNothing is known yet\b": "Nothing selected yet",
    r"\bcosts more score\b": "larger loss",
    r"\bthe predictions do without\b": "predicting without it",
    r"\bresume from what it has\b": "resume from it",
    r"\bas much again\b": "the same again",
    r"\bto look at twice\b": "deserves a second look",
    r"\bthe values that are there\b": "the values that are present",
}


def texts(path):
    """All text of a file that somebody reads, with the line where it begins."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, content
        return
    tree = ast.parse(content)
    pieces = {
        id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield node.lineno, node.value
    for number, line in enumerate(content.splitlines(), 1):
        if "  # " in line or line.lstrip().startswith("#"):
            yield number, line


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_nothing_reads_as_if_translated(construction):
    found = [
        f"{path.relative_to(SOURCE)}:{line}: write {CONSTRUCTIONS[construction]!r} instead of {match[0]!r}"
        for path in FILES
        for line, text in texts(path)
        for match in re.finditer(construction, re.sub(r"\s+", " ", text), re.IGNORECASE)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "is no text",
        "x.csv is no Parquet file",
        "names nodes that there are not",
        "at most so many parents",
        "one row a model",
        "behind PC",
        "'x' stands more than once",
        "nothing may be written to the folder",
        "2000 draws worth 358 independent ones",
        "'x' is not unknown here",
    ],
)
def test_what_it_looks_for_is_found(text):
    assert any(re.search(construction, text, re.IGNORECASE) for construction in CONSTRUCTIONS)
