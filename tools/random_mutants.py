"""Change one operator, number or argument at random, and see whether the tests of that part notice.

    python tools/random_mutants.py --number 20 --seed 1 nodes inference
    python tools/random_mutants.py --seed 1 --only 7      # one of them again

`tools/mutants.py` breaks what somebody thought of; this breaks what nobody did. A change is drawn from the
seed and its number alone. A test that fails without the change does not count, and neither do messages, types
and what is only shown. The exit code is 1 if a change survives: a test is missing, or the code is.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutants import ROOT, Copy, Source

#: Which tests belong to a folder, besides those that have its name.
TESTS = {
    "nodes": ("tests/nodes", "tests/scores/test_scores.py"),
    "scores": ("tests/scores",),
    "learning": (
        "tests/learning",
        "tests/test_confidence.py",
        "tests/test_structural_em.py",
        "tests/test_hidden.py",
    ),
    "inference": ("tests/inference",),
    "io": ("tests/files", "tests/test_interrupted_learning.py"),
}
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    **{
        ast.Lt: ast.LtE,
        ast.LtE: ast.Lt,
        ast.Gt: ast.GtE,
        ast.GtE: ast.Gt,
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
    },
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult},
    **{ast.And: ast.Or, ast.Or: ast.And},
}
#: Code that says something instead of doing something.
SHOWN = {"__repr__", "__str__", "_repr_html_", "refuse", "setting", "argument", "quoted", "option", "TypeVar"}


@dataclass(frozen=True)
class Change:
    """Code to put in the place of some other."""

    file: Path
    start: int
    stop: int
    code: str
    line: int
    before: str
    tests: tuple[str, ...]
    keyword: str = ""
    name: str = ""
    area: str = ""

    def applied(self, source: Source) -> tuple[Path, str]:
        text = (ROOT / self.file).read_text()
        return self.file, text[: self.start] + self.code + text[self.stop :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {' '.join(self.before.split())}  ->  {self.code}"


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield expressions and statements below a node, and what they can be changed into."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.FunctionDef) and (node.name in SHOWN or node.name.startswith("require")):
        return
    if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in SHOWN:
        return
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in SWAPPED:
            yield node, f"({ast.unparse(ast.Compare(left, [SWAPPED[type(op)]()], [right]))})"  # type: ignore[list-item]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED and not isinstance(
            left, ast.Constant | ast.List
        ):
            yield node, f"({ast.unparse(ast.BinOp(left, SWAPPED[type(op)](), right))})"  # type: ignore[arg-type]
        case ast.BoolOp(op=op, values=values):
            yield node, f"({ast.unparse(ast.BoolOp(SWAPPED[type(op)](), values))})"  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            yield from (
                (node, f"({one})") for one in ((value - 1, value + 1) if abs(value) < 10 else (2 * value,))
            )
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.Call(keywords=[*keywords]) if keywords:
            for left_out in keywords:
                rest = [keyword for keyword in keywords if keyword is not left_out]
                yield node, ast.unparse(ast.Call(node.func, node.args, rest))
    for name, field in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "bases"):
            for child in field if isinstance(field, list) else [field]:
                if isinstance(child, ast.AST):
                    yield from changes(child)


def draw(folders: list[str], seed: int, number: int) -> Change:
    """Return a change: any folder is as likely as any other, any kind of code in it, and any place."""
    rng = random.Random(f"{seed}:{number}")
    folder, found = rng.choice(folders), dict[str, list[Change]]()
    for path in sorted((ROOT / "src/spbn" / folder).glob("*.py")):
        text = path.read_text()
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        own = sorted(str(test.relative_to(ROOT)) for test in (ROOT / "tests").glob(f"*/test_{path.stem}.py"))
        tests = tuple(dict.fromkeys([*own, *TESTS[folder]]))
        for node, code in changes(ast.parse(text)):
            ends = [(node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)]
            lines = text.splitlines()
            start, stop = (starts[n - 1] + len(lines[n - 1].encode()[:c].decode()) for n, c in ends)
            change = Change(path.relative_to(ROOT), start, stop, code, node.lineno, text[start:stop], tests)
            found.setdefault(type(node).__name__, []).append(change)
    return rng.choice(found[rng.choice(sorted(found))])


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", default=list(TESTS), help=f"of src/spbn: {', '.join(TESTS)}")
    parser.add_argument("--number", type=int, default=20, help="of changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the change with this number alone")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for the tests of one change")
    parser.add_argument("--marks", default="not shared and not slow", help="of the tests, as for pytest -m")
    given = parser.parse_args()
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy.of(ROOT, Path(folder))
        copy.runner.marks = given.marks
        for number in range(given.number) if given.only is None else [given.only]:
            change = draw(given.folders, given.seed, number)
            outcome = copy.judge(change, limit=given.limit)  # type: ignore[arg-type]
            verdict = outcome.verdict
            if (
                verdict == "killed"
                and "::" in outcome.by
                and copy.runner.run([outcome.by], limit=given.limit)[0]
            ):
                verdict = "error"  # of that test
            verdicts.append(verdict)
            print(f"{number:4} {verdict:9} {change}  ({outcome.by}, {outcome.seconds:.0f} s)", flush=True)
        copy.runner.close()
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts))))
    return int("survived" in verdicts)


if __name__ == "__main__":
    sys.exit(main())
