"""Warm Amazon FSx for Lustre before a job needs it, and give the space back without losing data."""

__version__ = "0.1.0"
