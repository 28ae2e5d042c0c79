"""
What can go wrong at an edge.

* EdgeError
  * Rejected          the database refused for good; repeating changes nothing
    + BadValue        class 22: a value that its type cannot hold
  * Unavailable       the same call may succeed later; a caller outside is told 5xx
    + Contended       40001, 40P01, 55P03: another transaction was in the way
    + NoPartition     23514 of no constraint: the row has no partition yet; upkeep makes one
    + TooSlow         57014: the statement reached its timeout
    + Outdated        0A000: the function changed under a prepared plan
    + NotMigrated     42501, 42704, 42883, 42P01, 3F000: this database is not (yet) ours to use
    + DatabaseDown    08, 53, 57, 58; 25006: it is a standby now; no connection from the pool;
                      no answer in time

`Rejected` stands for every VCnnn of db/ERRORS.md; which one is in `code`. Branch on the class
or the code. Never read the message: it may change in any release.
"""

from __future__ import annotations


class EdgeError(Exception):
    """Base of everything the edges raise on purpose."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail
        self.hint = hint


class Rejected(EdgeError):
    """The database refused the call for good."""


class BadValue(Rejected):
    """A value does not fit its type, such as a zero character in JSON."""


class Unavailable(EdgeError):
    """The call may succeed if it is made again."""


class Contended(Unavailable):
    """Another transaction won or holds the rows; the same call will see its result."""


class NoPartition(Unavailable):
    """The partition for the row is not there yet. Never the row's fault."""


class TooSlow(Unavailable):
    """The statement was ended by its timeout and changed nothing."""


class Outdated(Unavailable):
    """The function's result changed while this session held a plan of the old one."""


class NotMigrated(Unavailable):
    """The database lacks a function, a role or a right that `aivedio migrate` gives."""


class DatabaseDown(Unavailable):
    """The database gave no answer. What the call did, if anything, is unknown."""


def facts(error: BaseException) -> dict[str, str | None]:
    """
    Return what may be logged of an error: its kind and its code.

    Messages of PostgreSQL may quote the row or the JSON that they complain about; the server's own
    log has them.
    """
    code = getattr(error, "code", None) or getattr(error, "sqlstate", None)
    return {"kind": type(error).__name__, "code": code if isinstance(code, str) else None}


def describe(error: BaseException) -> str:
    """
    Return what may be logged, stored and shown of an error, in one line.

    Words of ours are constant, those of db/functions too; of all others `facts` alone.
    """
    told = facts(error)
    named = " ".join(word for word in told.values() if word)
    code = told["code"]
    ours = isinstance(error, EdgeError) and (code is None or code.startswith("VC"))
    return f"{named}: {error}" if ours else named


_BY_SQLSTATE: dict[str, type[EdgeError]] = {
    "40001": Contended,
    "40P01": Contended,
    "55P03": Contended,
    "23514": NoPartition,
    "25006": DatabaseDown,
    "57014": TooSlow,
    "0A000": Outdated,
    "42501": NotMigrated,
    "42704": NotMigrated,
    "42883": NotMigrated,
    "42P01": NotMigrated,
    "3F000": NotMigrated,
}

_BY_CLASS: dict[str, type[EdgeError]] = {
    "VC": Rejected,
    "22": BadValue,
    "08": DatabaseDown,
    "53": DatabaseDown,
    "57": DatabaseDown,
    "58": DatabaseDown,
}


def from_sqlstate(sqlstate: str | None) -> type[EdgeError] | None:
    """Return the error that stands for a SQLSTATE, or None for one we do not expect."""
    if sqlstate is None:
        return DatabaseDown
    return _BY_SQLSTATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2])
