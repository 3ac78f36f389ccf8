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


def mistyped(name: str, valid: Iterable[str]) -> str:
    """The valid name that is one slip of the keyboard away: a letter too many, too few, wrong or swapped; else ''.

    Digits are no slips (`tile16` is not `tile32`), and names of three letters are all alike.
    """
    digits = _digits(name)
    for choice in valid:
        if min(len(name), len(choice)) > 3 and _digits(choice) == digits and _one_slip(name, choice):
            return choice
    return ""


def _digits(name: str) -> str:
    return "".join(letter for letter in name if letter.isdigit())


def _one_slip(a: str, b: str) -> bool:
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest_a, rest_b = a[first:], b[first:]
    swapped = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
    return swapped or rest_a[1:] == rest_b[1:] or rest_a[1:] == rest_b or rest_a == rest_b[1:]
