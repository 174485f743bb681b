"""Tables and figures, made from the results of the experiments and from the published numbers."""
