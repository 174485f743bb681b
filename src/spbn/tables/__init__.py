"""Tables: variables, whatever data they are read from, splits of their rows, and lags."""

from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table, Variable

__all__ = ["Missing", "Table", "Variable", "as_table"]
