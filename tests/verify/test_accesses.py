"""Which regions of a buffer overlap, against a comparison of each with each."""

from __future__ import annotations

import itertools
import random

import pytest

from safepallas._verify.analysis.accesses import covers, overlaps
from safepallas._verify.program import Region


def boxes(seed: int, ranks: list[int]) -> list[Region]:
    draw = random.Random(seed)
    found = []
    for _ in range(40):
        low = tuple(draw.randrange(6) for _ in range(draw.choice(ranks)))
        high = tuple(a + draw.randrange(4) for a in low)  # some are empty
        found.append(Region(0, 0, low, high))
    return found


@pytest.mark.parametrize("ranks", [[1], [2], [3], [0, 1], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_overlaps(seed: int, ranks: list[int]) -> None:
    regions = boxes(seed, ranks)
    overlapping = overlaps(regions)
    for a, b in itertools.product(set(regions), repeat=2):
        assert (b in overlapping[a]) == a.overlaps(b), (a, b)
    assert all(len(set(others)) == len(others) for others in overlapping.values())


@pytest.mark.parametrize("seed", range(5))
def test_covers(seed: int) -> None:
    """Of two boxes, one covers the other if it overlaps all that the other overlaps."""
    regions = boxes(seed, [0, 1])
    for a, b in itertools.product(regions, repeat=2):
        if covers(a, b):
            assert all(a.overlaps(c) for c in regions if b.overlaps(c))


def test_covers_is_no_overlap() -> None:
    assert covers(Region(0, 0, (0, 0), (2, 2)), Region(0, 0, (1, 0), (2, 2)))
    assert not covers(Region(0, 0, (1, 0), (2, 2)), Region(0, 0, (0, 0), (2, 2)))
    assert covers(Region(0, 0), Region(0, 0, (1,), (2,)))
    assert not covers(Region(0, 0, (1,), (2,)), Region(0, 0))
