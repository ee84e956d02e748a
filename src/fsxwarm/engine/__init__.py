"""Runs the model against the ports: walks, warms, releases, counts, reports."""
