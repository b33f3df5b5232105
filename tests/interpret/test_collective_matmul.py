"""The collective matmul against plain JAX, on 1 to 8 simulated devices, race detector on."""

import pytest

from .test_examples import BEGIN, EXAMPLES, run

IMPORT = """
import collective_matmul as example
from collective_matmul import Sizes
def check(n, interpret, **sizes):
    fn, args = example.build(mesh(n), interpret=interpret, **sizes)
    same(jax.jit(fn)(*args), example.expected(*args))
"""
# Rings of 2 and 4: see TWICE and X64.
RINGS = """
for n in 1, 3:
    check(n, races)
"""
# From six devices on they synchronise in two rounds.
EIGHT = """
check(8, races)
"""
# As many columns as fit a block: the last tile of a step is its first. One device and one block:
# there is one tile in all.
BLOCKS = """
for n, sizes in (1, Sizes(32, 128, 128, 128)), (3, Sizes(32, 256, 128, 128)):
    check(n, races, sizes=sizes)
check(2, races, sizes=Sizes(64, 128, 384, 128))
"""
TWICE = """
square = Sizes(rows=32, depth=128, cols=128, block=128)
for n, interpret in (2, races), (2, lazy), (4, races), (4, lazy):
    fn, (x, w) = example.build(mesh(n), sizes=square, interpret=interpret)
    def twice(x, w):
        y = fn(x, w)
        return y, fn(y[:, :128] % 4, w)
    y, z = jax.jit(twice)(x, w)
    same(y, example.expected(x, w))
    same(z, example.expected(y[:, :128] % 4, w))
"""
X64 = """
jax.config.update("jax_enable_x64", True)
check(4, races)
check(1, races)
"""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(RINGS, id="rings-of-1-and-3"),
        pytest.param(EIGHT, id="ring-of-8"),
        pytest.param(BLOCKS, id="one-block-or-three"),
        pytest.param(TWICE, id="twice-back-to-back"),
        pytest.param(X64, id="64-bit-types"),
    ],
)
def test_right_and_without_a_race(code: str) -> None:
    begin = BEGIN.replace("device_count=5", "device_count=9") if code is EIGHT else BEGIN
    assert run("-c", begin + IMPORT + code, str(EXAMPLES)) == ""
