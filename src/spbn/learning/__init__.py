"""Learning: from a table to a fitted network, and how sure one can be of its arcs."""
