"""What tests the tests, and what looks for input that nobody thought of."""
