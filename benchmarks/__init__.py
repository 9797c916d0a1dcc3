"""Speed, memory and sizes, measured beside others: `python -m benchmarks.compress` and its kin."""
