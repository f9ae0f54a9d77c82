"""Training runs: the state, the step, the schedule, the observers, and what survives a kill."""
