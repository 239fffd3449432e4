"""Stacks with their time, and the GIL: who held it, who waited."""
