"""The source of a library, in which code is found by the function that it is in.

Code is compared token by token: white space, line breaks, comments, semicolons, the kind of quotation marks
and a comma before a closing bracket do not matter. So a function may move to another module, be formatted
anew, or change elsewhere, and what was to be replaced in it is still found.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_STRING = (
    r"(?i:[rbuf]{0,2})(?:"
    + "|".join(
        rf"{quote}(?:\\.|(?!{quote}){inner})*{quote}"
        for quote, inner in (('"""', r"[^\\]"), ("'''", r"[^\\]"), ('"', r"[^\\\n]"), ("'", r"[^\\\n]"))
    )
    + ")"
)
_NUMBER = r"0[xXoObB]\w+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?j?"
_OPERATOR = r"\*\*=|//=|>>=|<<=|\.\.\.|->|:=|[-+*/%@&|^=<>!]=|\*\*|//|<<|>>|[-+*/%@&|^=<>~,.:()\[\]{}]"
_TOKEN = re.compile(
    rf"(?P<skipped>(?:\s|\#[^\n]*|\\\n|;)+)|(?P<string>{_STRING})|(?P<word>[^\W\d]\w*|{_NUMBER}|{_OPERATOR})",
    re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A word of code, as it is compared, and where it stands in the text."""

    word: str
    start: int
    stop: int


def tokens(text: str) -> list[Token]:
    """Cut code into words; a ValueError if that is not possible."""
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"this is not Python: {text[place : place + 40]!r}")
        word = match.group("word") or ""
        if match.group("string"):
            word = _plain(match.group("string"))
        if word and word in ")]}" and found and found[-1].word == ",":
            found.pop()
        if word:
            found.append(Token(word, match.start(), match.end()))
        place = match.end()
    return found


def _plain(string: str) -> str:
    """Write text in one kind of quotation marks."""
    if "f" in string[: re.search("[\"']", string).start()].lower():  # type: ignore[union-attr]
        return string.replace("'", '"')
    return repr(ast.literal_eval(string))


@dataclass(frozen=True)
class Part:
    """A function, a class, or whatever of a module is outside of them."""

    file: Path
    name: str
    tokens: tuple[Token, ...]

    def places(self, words: list[str]) -> Iterator[tuple[int, int]]:
        """Find every place of some words in the text of the file."""
        mine = [token.word for token in self.tokens]
        for k in range(len(mine) - len(words) + 1):
            if mine[k] == words[0] and mine[k : k + len(words)] == words:
                yield self.tokens[k].start, self.tokens[k + len(words) - 1].stop


@dataclass(frozen=True)
class Source:
    """The modules of a library in ``src``."""

    root: Path

    @cached_property
    def modules(self) -> tuple[Path, ...]:
        """The modules, from the root of the repository."""
        return tuple(path.relative_to(self.root) for path in sorted((self.root / "src").rglob("*.py")))

    @cached_property
    def texts(self) -> dict[Path, str]:
        """The text of every module."""
        return {path: (self.root / path).read_text() for path in self.modules}

    @cached_property
    def imports(self) -> dict[Path, set[str]]:
        """The names of modules that every module imports."""
        return {path: _imported(text) for path, text in self.texts.items()}

    @cached_property
    def parts(self) -> dict[str, list[Part]]:
        """Functions and classes by their qualified names; what is outside of them has no name."""
        found: dict[str, list[Part]] = {}
        for path, text in self.texts.items():
            for part in _parts(path, text):
                found.setdefault(part.name, []).append(part)
        return found

    def with_code(
        self, inside: str, before: str, after: str, *, module: str = "", nth: int = 0
    ) -> tuple[Path, str]:
        """Return the module in which some code of a function is replaced, and its new text.

        Lines of the new code are indented as far as the line in which it begins. A ValueError says that the
        code is not there, or not just once.
        """
        words = [token.word for token in tokens(before)]
        named = f"{inside or 'code outside of functions'}{f' in {module}' if module else ''}"
        parts = [part for part in self.parts.get(inside, ()) if str(part.file).endswith(module)]
        if not parts:
            raise ValueError(f"there is no {named}")
        places = [(part.file, *place) for part in parts for place in part.places(words)]
        if not (1 <= nth <= len(places) if nth else len(places) == 1):
            where = ", ".join(sorted({str(file) for file, *_ in places}))
            raise ValueError(f"{named} has {before!r} {len(places)} times{f': {where}' if where else ''}")
        file, start, stop = places[max(nth, 1) - 1]
        text = self.texts[file]
        line = text[text.rfind("\n", 0, start) + 1 : start]
        indent = line[: len(line) - len(line.lstrip())]
        if words == [token.word for token in tokens(after)]:
            raise ValueError(f"nothing is changed in {named}")
        changed = text[:start] + after.replace("\n", f"\n{indent}") + text[stop:]
        ast.parse(changed)
        return file, changed

    def with_text(self, file: str, before: str, after: str) -> tuple[Path, str]:
        """Return a file in which a text is replaced, and the new text; it must be there exactly once."""
        text = (self.root / file).read_text()
        if (found := text.count(before)) != 1:
            raise ValueError(f"{file} has the text {found} times: {before!r}")
        return Path(file), text.replace(before, after)


def _parts(path: Path, text: str) -> Iterator[Part]:
    words = tokens(text)
    starts = [token.start for token in words]
    ends = [0]
    for line in text.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    covered: list[tuple[int, int]] = []

    def walk(nodes: list[ast.stmt], prefix: str) -> Iterator[Part]:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                start, stop = ends[first - 1], ends[node.end_lineno or first]
                name = f"{prefix}{node.name}"
                yield Part(path, name, tuple(words[bisect_left(starts, start) : bisect_left(starts, stop)]))
                if not prefix:
                    covered.append((start, stop))
                yield from walk(node.body, f"{name}.")
            else:  # a function may be defined under a condition
                inner = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]
                yield from walk(inner, prefix)

    yield from walk(ast.parse(text).body, "")
    outside = (token for token in words if not any(start <= token.start < stop for start, stop in covered))
    yield Part(path, "", tuple(outside))


def users_of(module: Path, source: Source) -> list[Path]:
    """Return the modules that import a module, or import one that does."""
    users: list[Path] = []
    new = [module]
    while new:
        name = ".".join(new.pop().with_suffix("").parts[1:]).removesuffix(".__init__")
        for path, imported in source.imports.items():
            if name in imported and path not in users and path != module:
                users.append(path)
                new.append(path)
    return users


def _imported(text: str) -> set[str]:
    """Return the names of modules that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names
