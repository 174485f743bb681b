"""Time series: networks that describe each row given the rows before it."""

from spbn.timeseries.forecast import Forecast
from spbn.timeseries.learn import learn_dynamic
from spbn.timeseries.network import DynamicNetwork

__all__ = ["DynamicNetwork", "Forecast", "learn_dynamic"]
