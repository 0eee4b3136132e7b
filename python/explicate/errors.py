"""What the user got wrong, and what the user stopped."""


class BadInputError(ValueError):
    """Something the user gave cannot be used; the message says where and what to do."""


class StoppedError(KeyboardInterrupt):
    """The user interrupted a command; the message says what was kept."""
