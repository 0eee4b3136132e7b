"""What the user got wrong."""


class BadInputError(ValueError):
    """Something the user gave cannot be used; the message says where and what to do."""
