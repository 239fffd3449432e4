"""Pre-flight: what can be said of a graph before anything of it runs."""
