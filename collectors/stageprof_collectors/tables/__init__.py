"""What can be asked of a recording, as data frames: tasks, layers, workers, objects, memory."""
