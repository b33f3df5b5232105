"""The SparseCore gather on one subcore, with ``interpret=True``: any indices, in any order.

Not on many: ``interpret=True`` of JAX 0.10.2 and 0.12.0.1 does not know the axes of a mesh of
cores. Not with race detection: ``pltpu.InterpretParams`` there takes an index ref for one index.
"""

import pytest

from .test_examples import BEGIN, EXAMPLES, run

CHECK = """
import sparse_core_gather as example
from jax.sharding import AbstractDevice, AbstractMesh
chip = AbstractMesh((), (), abstract_device=AbstractDevice("TPU v6 lite", 1, "tpu"))
def check(indices):
    fn, (table, _) = example.build(interpret=True)
    args = table, jnp.array(indices, jnp.int32)
    with jax.sharding.use_abstract_mesh(chip):
        same(jax.jit(fn)(*args), example.expected(*args))
"""
SIZES = """
last = example.ROWS - 1
for pairs in 1, 2, 3:
    count = pairs * 2 * example.CHUNK
    check([last] * count)
    check([last - i for i in range(count)])
"""
WRONG = """
import pathlib
source = pathlib.Path(example.__file__).read_text()
assert source.count(right) == 1
exec(compile(source.replace(right, wrong), example.__file__, "exec"), vars(example))
check(range(4 * example.CHUNK))
"""


def test_indices_of_every_kind() -> None:
    assert run("-c", BEGIN + CHECK + SIZES, str(EXAMPLES)) == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param("fetch(chunk + 2, slot)", "fetch(chunk + 1, slot)", id="other-indices"),
        pytest.param("names = (s.even, s.odd)", "names = (s.even, s.even)", id="one-buffer"),
    ],
)
def test_the_check_can_fail(right: str, wrong: str) -> None:
    code = f"right, wrong = {right!r}, {wrong!r}" + WRONG
    with pytest.raises(AssertionError, match="Mismatched elements"):
        run("-c", BEGIN + CHECK + code, str(EXAMPLES))
