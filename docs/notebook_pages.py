"""A hook of mkdocs: every notebook in docs/tutorials becomes a page, with what its cells show.

Nothing is run: the notebooks have their outputs, from ``python docs/tutorials.py``. Figures become files
next to the page, and HTML is put in after the Markdown has been converted, so that it stays as it is.
"""

import base64
import json
import re
from typing import Any

from mkdocs.structure.files import File

FOLDER = "tutorials/"
DOWNLOAD = (
    "*This page is a notebook: [download it]({name}.ipynb), and run it yourself. "
    'It needs `pip install "spbn[plot]" jupyter`.*'
)
#: Frames of pandas carry a style and a class of their own; without them they look like other tables.
FRAME = re.compile(r"<style scoped>.*?</style>|(?<=<table) border=\"1\" class=\"dataframe\"", re.DOTALL)
#: A link from one tutorial to another.
OTHER = re.compile(r"\]\(([\w-]+)\.ipynb")
SPACES = re.compile(r"^ +", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every notebook, and the files of its figures."""
    for notebook in [file for file in files if file.src_uri.startswith(FOLDER)]:
        if not notebook.src_uri.endswith(".ipynb"):
            continue
        stem = notebook.src_uri.removesuffix(".ipynb")
        text, figures = page_of(json.loads(notebook.content_string), stem.removeprefix(FOLDER))
        files.append(File.generated(config, f"{stem}.md", content=text))
        for name, content in figures.items():
            files.append(File.generated(config, FOLDER + name, content=content))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Put the HTML that cells show into its places."""
    if not page.file.src_uri.startswith(FOLDER):
        return html
    notebook = files.get_file_from_path(page.file.src_uri.removesuffix(".md") + ".ipynb")
    shown = html_outputs(json.loads(notebook.content_string)) if notebook else []
    return re.sub(r'<div data-output="(\d+)"></div>', lambda found: shown[int(found[1])], html)


def page_of(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its figures by the names of their files."""
    parts: list[str] = []
    figures: dict[str, bytes] = {}
    placed = 0
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(OTHER.sub(r"](\1.md", source))
            if len(parts) == 1:
                parts.append(DOWNLOAD.format(name=name))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            elif "image/png" in data:
                file = f"{name}-{len(figures) + 1}.png"
                figures[file] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![{cell['metadata']['alt']}]({file})")
            elif "text/html" in data:
                parts.append(f'<div data-output="{placed}"></div>')
                placed += 1
            else:
                parts.append(f"```text\n{''.join(data['text/plain'])}\n```")
    return "\n\n".join(parts) + "\n", figures


def html_outputs(notebook: dict[str, Any]) -> list[str]:
    """Return the HTML that the cells of a notebook show, in their order."""
    found = [
        "".join(output["data"]["text/html"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {}) and "image/png" not in output["data"]
    ]
    return [f'<div class="output">{SPACES.sub("", FRAME.sub("", html))}</div>' for html in found]
