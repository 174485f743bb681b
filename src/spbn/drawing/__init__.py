"""Pictures: where nodes go, figures, graphs as SVG and as files."""
