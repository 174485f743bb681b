"""What comes in: variables and tables, frames, files, and splits of rows."""

from spbn.tables.files import read_table, write_table
from spbn.tables.frames import Missing, as_table, training_table
from spbn.tables.table import Table, Variable

__all__ = ["Missing", "Table", "Variable", "as_table", "read_table", "training_table", "write_table"]
