"""What the user got wrong."""


class BadInputError(Exception):
    """Something the user gave cannot be used; the message says where and what to do."""
