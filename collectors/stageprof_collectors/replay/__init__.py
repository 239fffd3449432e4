"""The run once more, without a cause of slowness."""
