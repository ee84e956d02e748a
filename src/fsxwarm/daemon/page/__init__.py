"""The page that a browser shows: read-only, made on the server, usable without scripts."""
