"""One page a file: each takes what is known of a recording and returns what Panel shows."""
