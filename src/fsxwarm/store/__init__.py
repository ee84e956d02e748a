"""The daemon's memory: SQLite, in a file of its own."""
