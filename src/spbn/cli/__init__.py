"""The command line, what it prints, progress, comparisons and the demo."""
