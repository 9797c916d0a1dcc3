"""The experiments of "Learning Directly from Grammar Compressed Text" on Laconic's code."""
