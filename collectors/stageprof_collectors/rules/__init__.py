"""The catalogue: one rule a file, each named like its rule, with a constant `RULE`."""
