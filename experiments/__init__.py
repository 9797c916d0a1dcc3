"""Experiments whose results are committed: see experiments.paper."""
