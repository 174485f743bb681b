"""Monitoring: alarms, drift and their causes, for rows as they arrive."""
