"""Metrics for Prometheus: what there is to see, as text that it and node_exporter read."""
