"""Background processes, all based on the class `Service`."""
