"""Measurements of tausvm; see README.md here for the commands."""
