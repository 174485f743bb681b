"""Time series: networks that describe each row given the rows before it."""
