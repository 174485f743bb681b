"""Rows, wherever they are: what scores and fits ask of them, and the rows of a table in memory."""
