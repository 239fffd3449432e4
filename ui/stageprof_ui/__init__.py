"""Draws what was recorded: the Panel app and the pictures of reports."""
