"""Batches on their way into columns and files, and back: what a recording is made of."""
