"""Who holds the GIL and who waits for it: a small process beside each one looks at its memory."""
