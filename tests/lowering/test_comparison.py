"""`assert_lowers_like` itself: it must tell kernels apart, and say where they differ."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas import testing

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
DMA = pltpu.SemaphoreType.DMA


def ours(index: int = 1, **options: Any) -> Callable[..., Any]:
    def kernel(x: sp.Ref, o: sp.Ref, sems: Any) -> None:
        sp.async_copy(x, o, sems[index]).wait()

    return sp.pallas_call(kernel, OUT, scratch_shapes=(sp.dma_semaphore(2),), **options)


def raw() -> Callable[..., Any]:
    def kernel(x, o, sems):
        pltpu.async_copy(x, o, sems.at[1]).wait()

    return pl.pallas_call(kernel, OUT, scratch_shapes=(DMA((2,)),))


def raw_with_another_parameter_name() -> Callable[..., Any]:
    def kernel(x, o, semaphores):
        pltpu.async_copy(x, o, semaphores.at[1]).wait()

    return pl.pallas_call(kernel, OUT, scratch_shapes=(DMA((2,)),))


def raw_with_another_kernel_name() -> Callable[..., Any]:
    def core(x, o, sems):
        pltpu.async_copy(x, o, sems.at[1]).wait()

    return pl.pallas_call(core, OUT, scratch_shapes=(DMA((2,)),))


def difference(left: Callable[..., Any], right: Callable[..., Any]) -> str:
    with pytest.raises(AssertionError) as info:
        testing.assert_lowers_like(left, right, X)
    assert len(str(info.value)) < 1000
    return str(info.value)


def test_the_two_are_alike() -> None:
    testing.assert_lowers_like(ours(), raw(), X)
    testing.assert_lowers_like(raw(), raw(), X)


def test_another_index() -> None:
    message = difference(ours(index=0), raw())
    assert re.match(r"the jaxprs differ at line \d+:\n  ours: ", message)
    first, second, third = message.splitlines()
    assert first.startswith("the jaxprs")
    assert second == third.replace("raw:  ", "ours: ").replace("[1]", "[0]")
    assert second != third


def test_another_kernel_name() -> None:
    """It stands in the call and in the kernel's own module, not in the jaxpr."""
    message = difference(ours(), raw_with_another_kernel_name())
    assert message.startswith("the lowered TPU modules differ at ")
    assert re.search(r"  ours: .*kernel.*\n  raw:  .*core", message)


def test_another_parameter_name(kernel_module: Callable[..., str]) -> None:
    """JAX 0.12 writes them into the kernel's module, as the locations of its arguments."""
    if "sems" in kernel_module(raw(), X):
        message = difference(ours(), raw_with_another_parameter_name())
        assert message.startswith("the lowered TPU modules differ at ")
        assert re.search(r"  ours: sems\n  raw:  semaphores", message)
    else:
        assert jax.__version_info__ < (0, 12)
        testing.assert_lowers_like(ours(), raw_with_another_parameter_name(), X)


def test_a_name_for_the_call() -> None:
    assert "name=my_copy" in difference(ours(name="my_copy"), raw())


def test_another_shape() -> None:
    more = pl.pallas_call(lambda *_: None, OUT, scratch_shapes=(DMA((3,)),))
    assert "jaxprs differ" in difference(ours(), more)


def test_more_lines() -> None:
    def kernel(x, o, sems):
        pltpu.async_copy(x, o, sems.at[1]).wait()
        pltpu.async_copy(x, o, sems.at[1]).wait()

    twice = pl.pallas_call(kernel, OUT, scratch_shapes=(DMA((2,)),))
    assert "jaxprs differ" in difference(ours(), twice)
    assert "jaxprs differ" in difference(twice, raw())
