"""Pages that stand alone: one file each, which asks nobody for anything."""
