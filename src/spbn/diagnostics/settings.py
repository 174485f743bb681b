"""What a network was made with, by its record."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from spbn.errors import ArgumentError
from spbn.kernels.estimates import BandwidthRule
from spbn.learning.learn import learn
from spbn.network import BayesianNetwork
from spbn.nodes.base import FitSettings
from spbn.record import plain_settings


def settings_of(network: BayesianNetwork, bandwidth: BandwidthRule | None = None) -> FitSettings | None:
    """Return the settings of the network's fit; None if they are not known.

    Parameters
    ----------
    bandwidth
        The bandwidth rule, if it is known from elsewhere.
    """
    settings = network.record.settings
    rule = settings.get("bandwidth") if bandwidth is None else bandwidth
    if rule is None:
        return None
    try:
        return FitSettings(rule, settings.get("engine", "auto"), settings.get("smoothing", 1.0))
    except ArgumentError:
        if bandwidth is not None:
            raise
        return None  # a function, which the record can only name


def default_settings(settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the defaults of what a network was made with: `learn`, or `BayesianNetwork.fit`."""
    made_by = BayesianNetwork.fit if settings and "algorithm" not in settings else learn
    parameters = inspect.signature(made_by).parameters.values()
    return plain_settings({p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty})
