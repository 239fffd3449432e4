"""Where every second went: the time line, the critical path, work by stage, layer and line."""
