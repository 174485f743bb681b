"""What a command answers: in words or, with ``--json``, as one JSON document and nothing else."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, final, get_type_hints

import typer

from spbn.cli.signatures import keyword_only, taking
from spbn.cli.sources import STANDARD
from spbn.cli.terminal import say
from spbn.errors import ArgumentError

Json = Annotated[bool, typer.Option("--json", help="Print a JSON document instead of text.")]


@final
class Answer:
    """What a command has found and which files it has written, for people or for programs."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._content: dict[str, Any] = {}
        self._files: dict[str, str | list[str]] = {}
        self._is_shown = False

    def give(self, show: Callable[[], None], content: Callable[[], Mapping[str, Any]]) -> None:
        """Answer: by a function that prints, or by one that returns what goes into the document."""
        if self.as_json:
            self._content.update(content())
        else:
            show()
            self._is_shown = True

    def add(self, **content: Any) -> None:
        """Put into the document what is only for programs."""
        self._content.update(content)

    def wrote(self, option: str, path: Path | Sequence[Path], line: str, *, apart: bool = True) -> None:
        """Say that a file was written, and which option asked for it; of several files, name all.

        Parameters
        ----------
        apart
            Whether an empty line comes first, if something was printed before.
        """
        self._files[option] = str(path) if isinstance(path, Path) else [str(one) for one in path]
        if self.as_json:
            return
        if apart and self._is_shown and len(self._files) == 1:
            say()
        say(line)

    @property
    def document(self) -> dict[str, Any]:
        """The answer as plain data."""
        return plain({**self._content, "files": self._files})


def answering(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --json; it is passed its `answer`, which knows who is to read it.

    Whatever else a command prints then goes to the error stream, and the document is printed when all is
    done: standard output has one document, or nothing if the command fails.
    """
    hints = get_type_hints(command, include_extras=True)
    own = [parameter for name, parameter in signature(command).parameters.items() if name != "answer"]
    option = Parameter("json_", Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    parameters = [*keyword_only(own, hints), option]

    @functools.wraps(command)
    def called(*, json_: bool, **given: Any) -> None:
        answer = Answer(as_json=json_)
        if not json_:
            command(answer=answer, **given)
            return
        if any(isinstance(value, Path) and value == STANDARD for value in given.values()):
            raise ArgumentError("--json and a table cannot both go to standard output (-): give a file.")
        with redirect_stdout(sys.stderr):
            command(answer=answer, **given)
        sys.stdout.write(json.dumps(answer.document, indent=2, allow_nan=False) + "\n")

    return taking(parameters, called)


def plain(value: Any) -> Any:
    """Return a value as JSON has it; what is missing or infinite is null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if hasattr(value, "tolist"):  # an array, or one of its values
        return plain(value.tolist())
    if isinstance(value, Sequence | set | frozenset):
        return [plain(inner) for inner in value]
    return str(value)
