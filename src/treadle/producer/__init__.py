"""The API of producers: tasks, handles, DAGs, schedules and events."""
