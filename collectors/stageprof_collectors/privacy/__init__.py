"""A recording without the user's names."""
