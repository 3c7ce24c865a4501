"""Fuzzing by hand."""
