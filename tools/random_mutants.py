"""Change one operator, number or argument at random, and see whether the tests of that part notice.

    python tools/random_mutants.py --number 20 --seed 1 nodes inference
    python tools/random_mutants.py --seed 1 --only 7      # one of them again

`tools/mutants.py` breaks what somebody thought of; this breaks what nobody did. A change is drawn from the
seed and its number alone. A test that fails without the change does not count, and neither does code that
words messages. The exit code is 1 if a change survives: a test is missing, or the code is not needed.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutants import ROOT, Copy, Source

EM, HIDDEN = "tests/test_structural_em.py", "tests/test_hidden.py"
#: Which tests belong to a folder, besides those that have the name of a module.
TESTS = {
    "nodes": ("tests/nodes", "tests/scores/test_scores.py"),
    "scores": ("tests/scores",),
    "learning": ("tests/learning", "tests/test_confidence.py", EM, HIDDEN),
    "inference": ("tests/inference",),
    "io": ("tests/files", "tests/test_interrupted_learning.py"),
}
PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Add, ast.Sub), (ast.Mult, ast.Div))
SWAPPED: dict[Any, Any] = {a: b for x, y in (*PAIRS, (ast.And, ast.Or)) for a, b in ((x, y), (y, x))}
#: Functions and calls that word something.
WORDS = {"__repr__", "__str__", "refuse", "setting", "argument", "quoted", "option"}


@dataclass(frozen=True)
class Change:
    """Code to put in the place of some other; `mutants.Copy` judges it like a mutation from the list."""

    file: Path
    start: int
    stop: int
    after: str
    tests: tuple[str, ...]
    keyword: str = ""

    def applied(self, source: Source) -> tuple[Path, str]:
        text = (source.root / self.file).read_text()
        return self.file, text[: self.start] + self.after + text[self.stop :]

    def __str__(self) -> str:
        text = (ROOT / self.file).read_text()
        before, line = " ".join(text[self.start : self.stop].split()), text.count("\n", 0, self.start) + 1
        return f"{self.file}:{line}: {before}  ->  {self.after}"


def changes(node: Any) -> Iterator[tuple[Any, str]]:
    """Yield what there is in a tree, and what it can be changed into."""
    called = node.func if isinstance(node, ast.Call) else node
    name = getattr(called, "id", getattr(called, "attr", getattr(called, "name", None)))
    if isinstance(node, ast.Raise | ast.JoinedStr) or name in WORDS:
        return
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in SWAPPED:
            yield node, f"({ast.unparse(ast.Compare(left, [SWAPPED[type(op)]()], [right]))})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED:
            yield node, f"({ast.unparse(ast.BinOp(left, SWAPPED[type(op)](), right))})"
        case ast.BoolOp(op=op, values=values):
            yield node, f"({ast.unparse(ast.BoolOp(SWAPPED[type(op)](), values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            for other in (value - 1, value + 1) if abs(value) < 10 else (2 * value,):
                yield node, f"({other})"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.Call(keywords=keywords):
            for kept in ([other for other in keywords if other is not one] for one in keywords):
                yield node, ast.unparse(ast.Call(node.func, node.args, kept))
    for part, inside in ast.iter_fields(node):
        if part not in ("annotation", "returns", "decorator_list"):
            for child in inside if isinstance(inside, list) else [inside]:
                if isinstance(child, ast.AST):
                    yield from changes(child)


def draw(folders: list[str], seed: int, number: int) -> Change:
    """Return a change: any folder is as likely as any other, any kind of code in it, and any place."""
    rng, found = random.Random(f"{seed}:{number}"), dict[str, list[Change]]()
    folder = rng.choice(folders)
    for path in sorted((ROOT / "src/spbn" / folder).glob("*.py")):
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        own = sorted(str(test.relative_to(ROOT)) for test in (ROOT / "tests").glob(f"*/test_{path.stem}.py"))
        tests = tuple(dict.fromkeys([*own, *TESTS[folder]]))
        for node, after in changes(ast.parse(text)):
            ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
            places = [len("".join(lines[: n - 1]) + lines[n - 1].encode()[:c].decode()) for n, c in ends]
            change = Change(path.relative_to(ROOT), *places, after, tests)
            found.setdefault(type(node).__name__, []).append(change)
    return rng.choice(found[rng.choice(sorted(found))])


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", default=list(TESTS), help=f"of src/spbn: {', '.join(TESTS)}")
    parser.add_argument("--number", type=int, default=20, help="of changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the change with this number alone")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the tests of one change")
    parser.add_argument("--marks", default="not shared and not slow", help="of the tests, as for pytest -m")
    given, verdicts = parser.parse_args(), []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy.of(ROOT, Path(folder))
        copy.runner.marks = given.marks
        for number in range(given.number) if given.only is None else [given.only]:
            change = draw(given.folders, given.seed, number)
            outcome = copy.judge(change, limit=given.limit)
            fails_anyway = "::" in outcome.by and copy.runner.run([outcome.by], limit=given.limit)[0] != 0
            verdicts.append("error" if fails_anyway else outcome.verdict)
            print(
                f"{number:4} {verdicts[-1]:9} {change}  ({outcome.by}, {outcome.seconds:.0f} s)", flush=True
            )
        copy.runner.close()
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts))))
    return int("survived" in verdicts)


if __name__ == "__main__":
    sys.exit(main())
