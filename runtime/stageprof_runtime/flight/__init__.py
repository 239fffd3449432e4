"""A flight recorder: the last minutes of a cluster, in a bounded row of files."""
