"""What a producer uses: tasks, handles, DAGs, schedules and events."""
