"""Errors that a person sees: one clear message, an exit status, no traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KernelcastError(Exception):
    """Base of every expected failure. `exit_status` is what the command line returns."""

    exit_status = 2


class InputError(KernelcastError):
    """Something given to us is wrong: the message names the place, the fault and what would be right."""


class RefusedError(KernelcastError):
    """A prediction that could not be made honestly; the message gives the reason."""

    exit_status = 3


def nearest_names(name: str, valid: Iterable[str], count: int = 3) -> str:
    """Return ` (did you mean a, b?)` for the names closest to `name`, or the whole list when none is close."""
    choices = sorted(valid)
    lower = {choice.lower(): choice for choice in choices}
    close = [lower[found] for found in difflib.get_close_matches(name.lower(), lower, n=count, cutoff=0.5)]
    if close:
        return f" (did you mean {', '.join(close)}?)"
    return f" (valid: {', '.join(choices)})"
