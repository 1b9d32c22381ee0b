"""Asking a service under test: within bounds, kept as evidence, judged by the test's own rules."""
