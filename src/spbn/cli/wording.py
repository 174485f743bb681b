"""Messages in the words of the command line.

The library names its own arguments: ``max_parents=2``, ``drop=['id']``. Whoever uses the command line has
options instead, so what is printed there says ``--max-parents 2`` and ``--drop id``.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
from collections.abc import Iterable
from inspect import signature

from spbn.learning.learn import learn

#: Arguments of Python, and the options that they are on the command line.
OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in signature(learn).parameters},
    "required_arcs": "--require",
    "forbidden_arcs": "--forbid",
    **{name: f"--{name}" for name in ("columns", "sep", "decimal", "encoding")},  # of `read_table`
    "replicates": "--replicates",  # of `confidence`
    "samples": "-n",  # of `write_explorer`
    **{name: f"--{name}" for name in ("lags", "series", "time", "every")},  # of `learn_dynamic`, `resample`
    "client": "--workers",
    "tolerance": "--tolerance",  # of `compact`
    "others": "--others",
    **{name: f"--{name}" for name in ("alarm", "drift")},  # of `Monitor`
}
del OPTIONS["data"], OPTIONS["progress"]

#: Patterns of what is possible in Python only, or has another name there, and what to say instead.
PHRASES = {
    r"an int, 0 or more, or a numpy\.random\.Generator": "a whole number, 0 or more",
    r"a fraction between 0 and 1, or a table": "a fraction between 0 and 1",
    r", or None\. Got": ". Got",
    r"limit the condition \(max_conditioning in pc\)": "use --algorithm hc",
    r"^a node type must be": "--start must be",
    r"^the arcs form a cycle": "the required arcs (--require) form a cycle",
    # Other commands have no such option.
    r"spbn\.resample\(data, time=.*, every=([^)]*)\)": r"--every \1 of learn and forecast, or spbn.resample",
    r"\(series=\.\.\.\)": "(--series)",
    r"\(\w+=[^,()]+, (--[\w-]+ [^,()]+)\)": r"(\1)",  # where reports give both
    r"^evidence\b": "--given",
    r"^do\b(?=:| names| sets)": "--do",
    r"^the event\b": "--event",
    r"\bis in evidence and in do:": "is in --given and in --do:",
    r"Ask for more draws \(n\)": "Ask for more draws (-n)",
    r", or pass trained=True to leave rows out of the fit": "",
    r"^(steps|n) must be a whole number": "-n must be a whole number",  # of `sample`
    r"^start gives more than max_parents=(\d+)": r"--require gives more than --max-parents \1",
}

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ANY = "|".join(OPTIONS)
_PART = re.compile(
    rf"""
    (?<![\w/.-])(?P<name>{_ANY})=(?P<value>\[(?:{_QUOTED}|[^\]'"])*\]|{_QUOTED}|None|-?\d(?:[\d.e+-]*\d)?)
        (?:\ in\ learn)?(?=[.,:;)]*(?:\s|$))
    | (?P<quoted>(?<!\w)(?:{_QUOTED}))                # a name or a value: it stays as it is
    | \b(?P<unmistakable>required_arcs|forbidden_arcs|max_parents)\b
    | (?:^|(?<=\ and\ ))(?P<subject>{_ANY})(?=(?:\ and\ \w+)?\ (?:must|can|cannot|names)\b)
    """,
    re.VERBOSE,
)


def in_options(message: str) -> str:
    """Name options instead of Python's arguments."""
    for pattern, ours in PHRASES.items():
        message = re.sub(pattern, ours, message)
    return _PART.sub(_translated, message)


def joined(names: Iterable[str]) -> str:
    """Write names as the value of an option that takes several: separated by commas, and fit for a shell."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(names)
    return shlex.quote(stream.getvalue())


def _translated(found: re.Match[str]) -> str:
    if found["quoted"]:
        return found[0]
    if not found["name"]:
        return OPTIONS[found["unmistakable"] or found["subject"]]
    try:
        value = ast.literal_eval(found["value"])
    except (SyntaxError, ValueError):
        value = found["value"]
    shown = joined(value) if isinstance(value, list) else shlex.quote(str(value))
    return f"{OPTIONS[found['name']]} {shown}"
