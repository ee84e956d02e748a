"""The daemon's face: a table of routes on a unix socket, who may call them, and the ways of a systemd service."""
