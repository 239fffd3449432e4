"""What records tests under pytest, and holds them to limits; `stageprof_pytest` loads it."""
