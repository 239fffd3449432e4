"""Recordings against recordings: what changed, whether that was chance, and what is to blame."""
