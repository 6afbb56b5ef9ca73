"""What an agent author installs: HTTP only, no database, nothing else of treadle."""
