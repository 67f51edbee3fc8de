"""skillc: a compiler for agent skills."""

__version__ = "0.1.0"
