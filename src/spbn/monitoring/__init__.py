"""Monitoring: alarms, drift and their causes, for rows as they arrive."""

from spbn.monitoring.attribution import Drift
from spbn.monitoring.monitor import AlarmFrame, Monitor, MonitorResult

__all__ = ["AlarmFrame", "Drift", "Monitor", "MonitorResult"]
