"""Run the tutorials: ``python docs/tutorials.py`` runs docs/tutorials/*.ipynb and keeps what they show.

``--check`` changes nothing: it fails where a cell prints something else than the notebook has, shows
another kind of thing, or warns. Notebooks whose names are given are run, or else all.
"""

import argparse
import base64
import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

import spbn

FOLDER = Path(__file__).parent / "tutorials"
TIMEOUT = 600  # seconds per cell: where nothing is compiled yet, that takes minutes
COLOURS = 128  # enough for a figure
#: Settings of the kernel: figures that are sharp on most screens, and no words about how it is reached.
KERNEL = """
c.InlineBackend.rc = {"figure.dpi": 120, "font.size": 9}
c.IPKernelApp.log_level = 40
"""


def run(notebook: Any) -> Any:
    """Return a notebook with what its cells show, each run anew in an empty folder."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        profile = Path(home) / "profile_default"
        profile.mkdir()
        (profile / "ipython_kernel_config.py").write_text(KERNEL, encoding="utf-8")
        done = nbformat.from_dict(notebook)
        # The package that this runs with; what belongs to the user, as settings and history, is left alone.
        package = str(Path(spbn.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": package, "IPYTHONDIR": home, "JUPYTER_CONFIG_DIR": home}
        client = NotebookClient(
            done,
            timeout=TIMEOUT,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            record_timing=False,
            startup_timeout=TIMEOUT,
        )
        client.execute(env=environment)
    for cell in code_cells(done):
        cell.execution_count = None
        cell.outputs = [smaller(output) for output in cell.outputs if not is_empty(output)]
    done.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    return done


def code_cells(notebook: Any) -> list[Any]:
    """Return the cells that are run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def is_empty(output: Any) -> bool:
    """Tell whether nothing of an output is seen, as with a progress line that is gone."""
    return output.output_type == "display_data" and not any(output.data.values())


def smaller(output: Any) -> Any:
    """Return an output without what only its run had or is there twice, and with figures of few colours."""
    if output.output_type == "execute_result":
        output.execution_count = None
    data = output.get("data", {})
    if "text/html" in data:
        data.pop("image/svg+xml", None)
    if "image/png" in data:
        picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
        stream = io.BytesIO()
        picture.convert("RGB").quantize(COLOURS).save(stream, "png", optimize=True)
        data["image/png"] = base64.b64encode(stream.getvalue()).decode()
    return output


def complaints(before: Any, after: Any) -> list[str]:
    """Say where two runs of a notebook differ, and what it warns of."""
    found = []
    for old, new in zip(code_cells(before), code_cells(after), strict=True):
        warned = [output.text for output in new.outputs if output.get("name") == "stderr"]
        found += [f"{old.source}\nwrites to the error stream:\n{text}" for text in warned]
        shown, printed = summary(old), summary(new)
        if shown != printed:
            found.append(f"{old.source}\nshows {shown}\nin the notebook, but now {printed}")
    return found


def summary(cell: Any) -> list[str]:
    """Return what must not change: text that is printed, and otherwise what kind of thing is shown."""
    parts: list[tuple[str, str]] = []
    for output in cell.outputs:
        if output.output_type != "stream":
            parts.append(("", " and ".join(sorted(output.get("data", {})))))
        elif parts and parts[-1][0] == output.name:  # a kernel may send what is printed in pieces
            parts[-1] = (output.name, parts[-1][1] + output.text)
        else:
            parts.append((output.name, output.text))
    return [text for _, text in parts]


def main() -> None:
    """Run notebooks, and write or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="without .ipynb; all by default")
    parser.add_argument("--check", action="store_true", help="change nothing, and fail if something differs")
    chosen = parser.parse_args()
    failed = False
    for name in chosen.names or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{name}.ipynb"
        before = nbformat.read(path, as_version=4)
        after = run(before)
        if not chosen.check:
            path.write_text(nbformat.writes(after) + "\n", encoding="utf-8")
            continue
        for text in complaints(before, after):
            failed = True
            print(f"{path.name}: {text}\n", file=sys.stderr)
    if failed:
        sys.exit("If that is what the tutorials should show, run python docs/tutorials.py")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
