"""The all-to-all of tokens against plain JAX, on 1 to 6 simulated devices, race detector on."""

import pytest

from .test_examples import BEGIN, EXAMPLES, run

IMPORT = """
import moe_all_to_all as example
def check(n, interpret, *tables, **sizes):
    fn, (x, counts) = example.build(mesh(n), interpret=interpret, **sizes)
    fn = jax.jit(fn)
    for table in tables or (counts,):
        table = jnp.asarray(table, jnp.int32).reshape(counts.shape)
        wanted = example.expected(x, table)
        for part in zip(example.counted(*fn(x, table)), wanted, strict=True):
            same(*part)
"""
# 2 and 4 devices: see TABLES and TWICE.
FEW = """
for n in 1, 3:
    check(n, races)
"""
# From six devices on they synchronise in several rounds.
SIX = """
check(6, races)
"""
# By source: 24 tokens, for two experts on each destination, in chunks of 4.
TABLES = """
check(
    2, races,
    [[[1, 0], [0, 3]], [[9, 6], [7, 2]]],        # odd, and not all of the tokens
    [[[0, 0], [0, 0]], [[0, 0], [0, 0]]],        # nothing at all
    [[[0, 0], [0, 24]], [[0, 0], [0, 24]]],      # everything to one expert
    [[[0, 0], [5, 19]], [[24, 0], [0, 0]]],      # everything away from here
    [[[4, 4], [8, 8]], [[3, 0], [0, 0]]],        # whole chunks; and a remainder alone
)
"""
LAZY = """
everyone_to_the_third = np.zeros((4, 4, 2), int)
everyone_to_the_third[:, 2, 1] = 24
check(4, lazy, everyone_to_the_third, np.arange(32) % 7, np.zeros((4, 4, 2), int))
"""
SIZES = """
check(3, races, sizes=example.Sizes(tokens=17, features=256, experts=3, chunk=1, dtype=jnp.float32))
check(3, lazy, sizes=example.Sizes(tokens=16, features=2048, experts=1, chunk=16,
                                   dtype=jnp.bfloat16))
"""
TWICE = """
for n, interpret in (2, lazy), (4, races):
    fn, (x, counts) = example.build(mesh(n), interpret=interpret)
    other = counts[::-1]
    def twice(x, counts):
        first = example.counted(*fn(x, counts))
        x, first = jax.lax.optimization_barrier((x + 1, first))  # the second call comes after it
        return *first, *example.counted(*fn(x, other))
    wanted = *example.expected(x, counts), *example.expected(x + 1, other)
    for part in zip(jax.jit(twice)(x, counts), wanted, strict=True):
        same(*part)
"""
X64 = """
jax.config.update("jax_enable_x64", True)
check(4, races)
check(1, races)
"""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(FEW, id="1-and-3-devices"),
        pytest.param(SIX, id="6-devices"),
        pytest.param(TABLES, id="odd-empty-and-full"),
        pytest.param(LAZY, id="copies-made-only-when-waited-for"),
        pytest.param(SIZES, id="other-sizes"),
        pytest.param(TWICE, id="twice-back-to-back"),
        pytest.param(X64, id="64-bit-types"),
    ],
)
def test_right_and_without_a_race(code: str) -> None:
    begin = BEGIN.replace("device_count=5", "device_count=7") if code is SIX else BEGIN
    assert run("-c", begin + IMPORT + code, str(EXAMPLES)) == ""
