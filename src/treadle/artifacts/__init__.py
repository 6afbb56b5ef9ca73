"""The files of tasks: the store that keeps them, and the sweep that deletes orphaned ones."""
