"""The probes: each file installs one kind of observation and returns its undo."""
