"""The daemon's API for programs in Python: `Client`, and the objects that it sends and gets."""
