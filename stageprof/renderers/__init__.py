"""A recording or its summary as text: one form a file."""
