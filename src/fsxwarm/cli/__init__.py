"""The command line: one file a command; parse, print, exit status."""
