"""Pages that are written by what they describe (a hook of mkdocs): the commands, and the changelog."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: What the terminal shows in bold is code here.
MARKUP = re.compile(r"\[bold\](.*?)\[/(?:bold)?\]")
EXAMPLE = re.compile(r"^\[dim\](.*?)\[/(?:dim)?\]$")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Complete the pages whose content is elsewhere."""
    if page.file.src_uri == "changelog.md":
        return changelog()
    if page.file.src_uri == "commands.md":
        return markdown + commands()
    return markdown


def changelog() -> str:
    """Return CHANGELOG.md, with links as they are among the pages."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\((?:CONTRIBUTING|README)\.md\)", r"`\1.md`", text)


def commands() -> str:
    """Describe every command: what it does, examples, and what it takes."""
    from spbn.cli.main import app

    return "\n\n".join(_command(name, command) for name, command in app.commands.items()) + "\n"


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    prose, examples = _help(command.help or "")
    usage = " ".join(["spbn", name, *map(_argument, arguments), "[options]"])
    rows = [(_argument(p), p.help or "") for p in arguments]
    rows += [(", ".join(p.opts), _with_default(p)) for p in options]
    table = [f"| `{left}` | {_cell(right)} |" for left, right in rows]
    return "\n\n".join(
        [
            f"## spbn {name}",
            prose,
            "```\n" + "\n".join([usage, *(["", *examples] if examples else [])]) + "\n```",
            "\n".join(["| | |", "| --- | --- |", *table]),
        ]
    )


def _help(text: str) -> tuple[str, list[str]]:
    """Split the help of a command into prose and examples."""
    lines = [line.strip() for line in inspect.cleandoc(text).splitlines()]
    examples = [found[1] for line in lines if (found := EXAMPLE.match(line))]
    prose = "\n".join(line for line in lines if not EXAMPLE.match(line)).strip()
    return re.sub(r"\n{3,}", "\n\n", prose), examples


def _argument(parameter: Any) -> str:
    name = f"{parameter.metavar}{'...' if parameter.nargs == -1 else ''}"
    return name if parameter.required else f"[{name}]"


def _with_default(parameter: Any) -> str:
    from spbn.cli.command import shown_default

    default = "" if parameter.is_flag else shown_default(parameter)
    return f"{parameter.help} Default: `{default}`." if default else parameter.help


def _cell(text: str) -> str:
    text = MARKUP.sub(r"`\1`", text)
    return text.replace("|", "\\|").replace("\n", " ").replace("[", "\\[")
