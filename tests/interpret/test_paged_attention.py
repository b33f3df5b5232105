"""The paged attention example against plain JAX, for lengths of every kind, in both interpreters.

All that a sequence has no right to look at is NaN: other pages, and the rest of its last one.
"""

import pytest

from .test_examples import BEGIN, EXAMPLES, run

CHECK = """
import paged_attention as example
def poisoned(pages, lengths, table):
    used = np.zeros(pages.shape[1:3], bool)
    for length, row in zip(lengths, table):
        for token in range(length):
            used[row[token // example.PAGE], token % example.PAGE] = True
    return np.where(used[..., None], pages, np.nan).astype(pages.dtype)
def check(interpret, *batches):
    call = jax.jit(lambda *args: example.paged_attention(*args, interpret=interpret))
    plain = jax.jit(example.expected)
    for lengths in batches:
        lengths, table, q, k, v = map(np.asarray, example.inputs(lengths, 2, example.POOL))
        k, v = (poisoned(pages, lengths, table) for pages in (k, v))
        table = np.pad(table, ((0, 0), (0, 20 - table.shape[1])), constant_values=-1)
        args = lengths, table, q, k, v
        got, wanted = (np.asarray(fn(*args), np.float32) for fn in (call, plain))
        assert np.isfinite(wanted).all()
        np.testing.assert_allclose(got, wanted, atol=0.02)
        assert not got[lengths == 0].any()
"""
# Around the ends of pages (16) and of blocks (128); none at all, first, last, in a row.
LENGTHS = "(15, 16, 17, 1), (127, 128, 129, 0), (0, 0, 257, 0), (0, 0, 0, 0)"


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("True", id="interpret-true"),
        pytest.param("races", id="races"),
        pytest.param("lazy", id="copies-made-only-when-waited-for"),
    ],
)
def test_agrees_with_plain_jax(mode: str) -> None:
    assert run("-c", f"{BEGIN}{CHECK}check({mode}, {LENGTHS})", str(EXAMPLES)) == ""


def test_the_check_can_fail() -> None:
    """Fetch each block into the slot that is being read: the numbers show it."""
    code = """
import pathlib
right, wrong = "prefetch(block + 1, 1 - slot)", "prefetch(block + 1, slot)"
source = pathlib.Path(example.__file__).read_text()
assert right in source
exec(compile(source.replace(right, wrong), example.__file__, "exec"), vars(example))
check(True, (129, 129, 0, 0))
"""
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        run("-c", BEGIN + CHECK + code, str(EXAMPLES))
