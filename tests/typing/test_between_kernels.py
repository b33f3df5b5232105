"""accept/apart.py: what of it can only be traced and compiled, and why."""

import importlib.util
import re
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas import testing

from ..loading import load
from .checkers import HERE

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


@pytest.fixture(scope="module")
def accepted() -> ModuleType:
    return load(HERE / "accept" / "apart.py")


@pytest.mark.parametrize(
    ("interpret", "error", "message"),
    [
        (True, AttributeError, "has no attribute 'full'"),
        (pltpu.InterpretParams(), NotImplementedError, r"nan \+ dma_sem"),
        (
            pltpu.InterpretParams(uninitialized_memory="zero"),
            AttributeError,
            "has no attribute 'full'",
        ),
    ],
    ids=["True", "InterpretParams", "zeroed"],
)
def test_no_interpreter_lets_a_semaphore_out(
    interpret: Any, error: type[Exception], message: str, accepted: ModuleType
) -> None:
    """Measured with jax 0.10.2 and 0.12.0.1. Once this fails, let the check run `apart` itself."""
    semaphores = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)

    def start(x: Any, o: Any, sem: Any) -> None:
        pltpu.make_async_copy(x, o, sem).start()

    begin = pl.pallas_call(
        start,
        (X, pltpu.SemaphoreType.DMA(())),
        in_specs=[accepted.HBM],
        out_specs=(accepted.HBM, semaphores),
        interpret=interpret,
    )
    with pytest.raises(error, match=message):
        begin(jnp.zeros(X.shape, X.dtype))


def test_the_semaphore_of_one_kernel_is_that_of_the_next(accepted: ModuleType) -> None:
    jaxpr = jax.make_jaxpr(accepted.apart)(X).jaxpr
    start, done = (eqn for eqn in jaxpr.eqns if eqn.primitive.name == "pallas_call")
    assert [str(var.aval.dtype) for var in start.outvars] == ["float32", "dma_sem"]
    assert done.invars[1:] == start.outvars
    assert done.invars[0] is start.invars[0]
    assert done.params["input_output_aliases"] == ((1, 0),)


def raw_apart(x: jax.Array) -> jax.Array:
    """`apart` in raw Pallas."""
    hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    semaphore = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    params = pltpu.CompilerParams(has_side_effects=True)

    def start(x: Any, o: Any, sem: Any) -> None:
        pltpu.make_async_copy(x, o, sem).start()

    def done(x: Any, begun: Any, sem: Any, o: Any) -> None:
        pltpu.make_async_copy(begun, begun, sem).wait()

    pinned = pltpu.with_memory_space_constraint(x, pltpu.HBM)
    begun, sem = pl.pallas_call(
        start,
        (pltpu.HBM(x.shape, x.dtype), pltpu.SemaphoreType.DMA(())),
        in_specs=[hbm],
        out_specs=(hbm, semaphore),
        compiler_params=params,
    )(pinned)
    doubled = x * 2
    copied = pl.pallas_call(
        done,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[hbm, hbm, semaphore],
        out_specs=hbm,
        input_output_aliases={1: 0},
        compiler_params=params,
    )(pinned, begun, sem)
    return doubled + copied


def test_it_lowers_like_raw_pallas(accepted: ModuleType) -> None:
    testing.assert_lowers_like(accepted.apart, raw_apart, X)


@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2"])
def test_it_compiles_and_no_buffer_moves_meanwhile(topology: str, accepted: ModuleType) -> None:
    """Without HBM as the place of both buffers, the compiler for v6e copies one of them."""
    if importlib.util.find_spec("libtpu") is None:
        pytest.skip("libtpu is not installed: no TPU compiler here")
    text = testing.compile_for_tpu(accepted.apart, X, topology=topology).as_text()
    calls = re.findall(r"%(\S+) = [^\n=]* custom-call\(([^)]*)\), custom_call_target", text)
    assert len(calls) == 2, text
    (start, given), (_, taken) = calls
    x, begun, sem = taken.split(", ")
    assert x == given  # its source
    for i, operand in enumerate((begun, sem)):
        element = rf"{re.escape(operand)} = [^\n]* get-tuple-element\(%{re.escape(start)}\), "
        assert re.search(rf"{element}index={i}\b", text), text
