"""Errors of the user's input, and interruptions."""


class BadInputError(ValueError):
    """Invalid input of the user; the message says where it is and what to do."""


class StoppedError(KeyboardInterrupt):
    """The user interrupted a command; the message says what was kept."""
