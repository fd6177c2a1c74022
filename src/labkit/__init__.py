"""CPU or GPU: the helper package of the course. Importing it loads nothing heavy."""

__version__ = "0.1.0"
