"""Tables: variables, whatever data they are read from, splits of their rows, and lags."""

from spbn._deprecated import table_function
from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table, Variable


def __getattr__(name: str) -> object:
    return table_function(name)


__all__ = ["Missing", "Table", "Variable", "as_table"]
