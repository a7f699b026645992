"""What can go wrong with a source: each error says what, where, and what next. None ever holds a credential."""


class SourceError(Exception):
    """A source cannot be used; the message is all that a user needs."""


class NotReadyError(SourceError):
    """Something is to be done before a source may be asked: a variable, an agreement, a download."""


class RefusedError(NotReadyError):
    """The source answered 401 or 403: a wrong credential, or an agreement that this account has not accepted."""

    def __init__(self, message: str, brief: str) -> None:
        super().__init__(message)
        self.brief = brief
        """Status and reason alone, where page, variable and tasks are told beside it."""


class CutError(SourceError):
    """The connection ended early; what has come stays, and the rest is asked for again."""


class ChangedError(SourceError):
    """A file is not what it was, or not what was published; nothing of it is kept."""


class NoRoomError(SourceError):
    """The disk is too small; said before the first byte."""
