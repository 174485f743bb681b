"""What comes in: variables and tables, frames, files, and splits of rows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spbn.cli.files import read_table, write_table
    from spbn.tables.frames import Missing, as_table, training_table
    from spbn.tables.table import Table, Variable

#: Where the names are. They are imported on first use: the command line needs to know quickly what a table
#: is called, long before one is read.
_PLACES = {
    "Missing": "tables.frames",
    "Table": "tables.table",
    "Variable": "tables.table",
    "as_table": "tables.frames",
    "read_table": "cli.files",
    "training_table": "tables.frames",
    "write_table": "cli.files",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'spbn.tables' has no attribute {name!r}")
    return getattr(import_module(f"spbn.{_PLACES[name]}"), name)


__all__ = ["Missing", "Table", "Variable", "as_table", "read_table", "training_table", "write_table"]
