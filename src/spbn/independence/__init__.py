"""Tests of conditional independence, all asked in the same way: ``test.pvalue(x, y, given)``.

====================  ==========================================  =============================
test                  assumes                                     cost of one question
====================  ==========================================  =============================
`PartialCorrelation`  jointly Gaussian variables (exact)          microseconds, at any size
`RCoT`                only smoothness                             linear in the rows
`CMIknn`              nothing                                     quadratic in the rows
`Oracle`              knows the true graph                        a walk over the graph
====================  ==========================================  =============================

A p-value depends only on the data, the seed, and the question.
"""

from spbn.independence.base import IndependenceTest, Oracle
from spbn.independence.cmi_knn import CMIknn
from spbn.independence.partial_correlation import PartialCorrelation
from spbn.independence.rcot import RCoT

__all__ = ["CMIknn", "IndependenceTest", "Oracle", "PartialCorrelation", "RCoT"]
