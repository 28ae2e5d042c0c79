"""
What can go wrong at a provider, by name, and how often each was made to happen.

A job's plan names its faults. Nothing here is random: the same plan misbehaves in the same way,
so that a script can know how the job must end.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class Fault(StrEnum):
    """One way to misbehave. The text in `MEANING` is what a person reads about it."""

    # submission
    EARLY = "early"
    EARLY_END = "early_end"
    REPLY_LOST = "reply_lost"
    REFUSED = "refused"
    # callbacks
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    DELAY = "delay"
    DROP = "drop"
    LATE = "late"
    CONTRADICT = "contradict"
    OLD_ATTEMPT = "old_attempt"
    UNKNOWN_WORD = "unknown_word"
    LIE = "lie"
    FORGED = "forged"
    OUTDATED = "outdated"
    SKEWED = "skewed"
    GARBLED = "garbled"
    UNSIGNED = "unsigned"
    # polls
    POLL_MISSING = "poll_missing"
    POLL_THROTTLED = "poll_throttled"
    POLL_ERROR = "poll_error"
    POLL_MALFORMED = "poll_malformed"
    POLL_SLOW = "poll_slow"
    POLL_STALE = "poll_stale"
    POLL_TRUNCATED = "poll_truncated"
    POLL_DRIP = "poll_drip"
    RESULT_ERROR = "result_error"
    # cancel
    CANCEL_IGNORED = "cancel_ignored"
    # files
    FILE_ERROR = "file_error"
    FILE_TRUNCATED = "file_truncated"
    FILE_CORRUPT = "file_corrupt"
    FILE_GONE = "file_gone"
    # the media plane
    MEDIA_FLAKY = "media_flaky"
    MEDIA_CRASH = "media_crash"
    MEDIA_FAILED = "media_failed"


MEANING: dict[Fault, str] = {
    Fault.EARLY: "the first callback arrives before the submission is answered",
    Fault.EARLY_END: "the job is over, callbacks and all, before the submission is answered",
    Fault.REPLY_LOST: "the job is made, but the connection breaks before the answer",
    Fault.REFUSED: "the submission is answered 422 and no job is made",
    Fault.DUPLICATE: "every callback is delivered twice at the same moment, under one id",
    Fault.REORDER: "callbacks are held until the end and delivered newest first",
    Fault.DELAY: "every callback is delivered delay_s after its time",
    Fault.DROP: "no callback is ever delivered",
    Fault.LATE: "a callback from the middle of the job arrives after its end",
    Fault.CONTRADICT: "after the end a second callback claims the opposite end",
    Fault.OLD_ATTEMPT: "the job failed; once it has been submitted again it claims success",
    Fault.UNKNOWN_WORD: "for a while callbacks and polls show a status word nobody documented",
    Fault.LIE: "a signed callback tells of another job's end at this job's address",
    Fault.FORGED: "a callback signed with the wrong key claims the opposite end",
    Fault.OUTDATED: "a rightly signed callback of an hour ago claims the opposite end",
    Fault.SKEWED: "the signing clock is four minutes ahead",
    Fault.GARBLED: "a rightly signed callback is no JSON",
    Fault.UNSIGNED: "a callback without its signature claims the opposite end",
    Fault.POLL_MISSING: "the first polls are answered 404",
    Fault.POLL_THROTTLED: "polls are answered 429 with Retry-After",
    Fault.POLL_ERROR: "polls are answered 5xx",
    Fault.POLL_MALFORMED: "polls are answered 200 with something that is no prediction",
    Fault.POLL_SLOW: "polls are answered after slow_s",
    Fault.POLL_STALE: "polls are answered as the job was before it started",
    Fault.POLL_TRUNCATED: "the answer to a poll breaks off in the middle",
    Fault.POLL_DRIP: "the answer to a poll comes in pieces, over slow_s",
    Fault.RESULT_ERROR: "the job is over, but whoever asks for its result is answered 504 at first",
    Fault.CANCEL_IGNORED: "a cancel is answered politely and the job goes on",
    Fault.FILE_ERROR: "the output answers 503 at first",
    Fault.FILE_TRUNCATED: "the output's body breaks off at first",
    Fault.FILE_CORRUPT: "the output's bytes never match its checksum",
    Fault.FILE_GONE: "the output has been deleted already",
    Fault.MEDIA_FLAKY: "the transcoder fails the first time",
    Fault.MEDIA_CRASH: "the transcoder is gone without a word the first time",
    Fault.MEDIA_FAILED: "the transcoder cannot do this file, ever",
}

POLL_FAULTS = (
    Fault.POLL_MISSING,  # only a young job is plausibly unknown, so it comes first
    Fault.POLL_THROTTLED,
    Fault.POLL_ERROR,
    Fault.POLL_MALFORMED,
    Fault.POLL_TRUNCATED,
    Fault.POLL_SLOW,
    Fault.POLL_DRIP,
    Fault.POLL_STALE,
)
MEDIA_FAULTS = (Fault.MEDIA_FLAKY, Fault.MEDIA_CRASH, Fault.MEDIA_FAILED)
# A file's answer tells the pretend media plane what to do wrong with it.
MEDIA_HEADER = "x-pretend-media"


class Tally:
    """How often each kind of fault was made to happen; it counts deeds, not intentions."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, kind: Fault | str) -> None:
        """Count one more of a kind; kinds of other processes may be plain words."""
        self._counts[str(kind)] += 1

    def as_dict(self) -> dict[str, int]:
        """Return the counts by kind, kinds that never happened left out."""
        return dict(sorted(self._counts.items()))
