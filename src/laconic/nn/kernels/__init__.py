"""Kernels of our own for GPUs, compiled when they are first needed, beside what they compute."""
