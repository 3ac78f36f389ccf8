"""Prime factors of transform lengths: what decides by which algorithm, and in how many passes, a transform is done."""

from __future__ import annotations

import numpy as np

from .work import FloatArray

DIVISORS = (2, *range(3, 4096, 2))


def largest_prime(n: FloatArray) -> FloatArray:
    """Largest prime factor of n, found among divisors below 4096 (what is left beyond counts as prime)."""
    rest = np.round(n).astype(np.int64)
    largest = np.ones(n.shape)
    for divisor in DIVISORS:
        if divisor * divisor > rest.max(initial=1):
            break
        while (divides := (rest % divisor == 0) & (rest > 1)).any():
            rest = np.where(divides, rest // divisor, rest)
            largest = np.where(divides, float(divisor), largest)
    return np.asarray(np.maximum(largest, rest))


def exponent_of(n: FloatArray, prime: int) -> FloatArray:
    """How often `prime` divides n."""
    rest, count = np.round(n).astype(np.int64), np.zeros(n.shape)
    for _ in range(40):
        divides = (rest % prime == 0) & (rest > 0)
        if not divides.any():
            break
        rest, count = np.where(divides, rest // prime, rest), count + divides
    return count


def rough_part(n: FloatArray) -> FloatArray:
    """What remains of n after dividing out 2, 3, 5 and 7."""
    rest = np.asarray(np.round(n), dtype=np.float64)
    for prime in (2, 3, 5, 7):
        rest = rest / np.power(float(prime), exponent_of(n, prime))
    return np.round(rest)


def next_power_of_two(n: FloatArray) -> FloatArray:
    """Smallest power of two that is not below n."""
    return np.asarray(np.exp2(np.ceil(np.log2(np.maximum(n, 1.0)))))
