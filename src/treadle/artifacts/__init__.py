"""Files of tasks: where they are stored, and how those without a task are removed."""
