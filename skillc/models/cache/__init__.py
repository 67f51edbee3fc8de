"""Replies that were paid for once."""
