"""Gathers batches, aligns their clocks, stores them, and accounts for every second."""
