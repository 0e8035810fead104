# SPDX-License-Identifier: BSD-3-Clause
"""Medians, and ratios of things that took turns."""


def median(values):
    """Of at least one value."""
    v = sorted(values)
    if not v:
        raise ValueError("no median of nothing")
    half = len(v) // 2
    return v[half] if len(v) % 2 else (v[half - 1] + v[half]) / 2


def ratio(over, under):
    """The median of the quotients turn by turn: what disturbs one turn disturbs both sides of its
    quotient. Turns that lack a side do not count; None if none is left."""
    both = [a / b for a, b in zip(over, under) if a is not None and b]
    return median(both) if both else None


def spread(values):
    """Half the distance between the quartiles, as a share of the median; 0 for one value."""
    v = sorted(values)
    middle = median(v)
    if len(v) < 2 or not middle:
        return 0.0
    cut = len(v) // 2
    return abs(median(v[-cut:]) - median(v[:cut])) / 2 / abs(middle)


def round_up(n, step):
    """perftest 4.5 counts completions by hundreds, and ends too soon with other numbers."""
    return max(step, -(-int(n) // step) * step)
