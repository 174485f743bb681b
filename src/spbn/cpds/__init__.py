"""Conditional densities of one node given its parents, one file for each type of node."""

from spbn.cpds.base import CPD
from spbn.cpds.ckde import CKDE
from spbn.cpds.linear_gaussian import LinearGaussian

__all__ = ["CKDE", "CPD", "LinearGaussian"]
