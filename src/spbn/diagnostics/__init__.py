"""What a network says about rows and about itself: unusual rows, importance, calibration, early stops.

`unusual_rows`, `reasons`, `typical`
    Which rows are unlikely, and which nodes are to blame.
`leave_one_out`, `out_of_fold`
    Log-densities of training rows under parameters that were fitted without them.
`check_data`
    How columns are read, what is missing, and what deserves a second look.
`Strengths`
    How often replicates of a search have an arc, from `spbn.confidence` or the table that it wrote.
`populations`
    What is different about each class of a network with a hidden class.
`early_stop`
    Why a search ended with less than it could have found, and what to try.
"""

from spbn.diagnostics.blame import Reason, typical
from spbn.diagnostics.data_check import ColumnCheck, DataCheck, check_data
from spbn.diagnostics.model import EarlyStop, FarRow, Strengths, early_stop
from spbn.diagnostics.populations import Difference, Population, populations
from spbn.diagnostics.rows import (
    Scoring,
    UnusualRow,
    UnusualRows,
    leave_one_out,
    out_of_fold,
    reasons,
    unusual_rows,
)

__all__ = [
    "ColumnCheck",
    "DataCheck",
    "Difference",
    "EarlyStop",
    "FarRow",
    "Population",
    "Reason",
    "Scoring",
    "Strengths",
    "UnusualRow",
    "UnusualRows",
    "check_data",
    "early_stop",
    "leave_one_out",
    "out_of_fold",
    "populations",
    "reasons",
    "typical",
    "unusual_rows",
]
