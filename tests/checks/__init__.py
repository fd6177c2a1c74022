"""Checks of answers."""
