"""Networks over time, and monitoring: rows that come one after another."""
