"""Other libraries: scikit-learn and pgmpy."""
