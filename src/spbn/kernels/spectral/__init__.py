"""Sums of Gaussians through Fourier space; see `engine`."""

from spbn.kernels.spectral.engine import DIMENSIONS, REACH, THRESHOLD, log_density

__all__ = ["DIMENSIONS", "REACH", "THRESHOLD", "log_density"]
