"""Background processes: one shape, one process each."""
