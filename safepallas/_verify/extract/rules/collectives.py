"""Collectives of XLA between kernels: each core waits until all have said what they have."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from safepallas._jax.collectives import Collective
from safepallas._jax.jaxprs import dtype_of
from safepallas._verify.extract import values as _values
from safepallas._verify.extract.interpreter import Compiler, Do, Env, Equation, Rules
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.extract.values import UNKNOWN, Unknown

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core


def _collective(compiler: Compiler, equation: Equation, collective: Collective) -> Do:
    """Nothing in it orders what kernels do, and data are not followed."""
    me, rule = id(equation.jax), collective.compute
    if rule is None:
        return lambda core, env: None  # its results are unknown in the template
    pairs = [*zip(equation.inputs, equation.outputs, strict=True)]
    dtypes: list[Any] = [dtype_of(atom) for atom in equation.jax.outvars]

    def do(core: Core, env: Env) -> Pause:
        mesh, lockstep = core.shared.mesh, core.shared.lockstep
        sizes = [mesh.devices.get(axis, 0) for axis in collective.axes]
        if not all(sizes) or (mesh.size > 1 and lockstep is None):
            return
        members = [
            mesh.number({**core.at, **dict(zip(collective.axes, at, strict=True))}, core.part)
            for at in itertools.product(*map(range, sizes))
        ]
        for (at, out), dtype in zip(pairs, dtypes, strict=True):
            key = me, at, core.count(("collective", me, at))
            found: dict[int, Value] = {core.number: env[at]}
            if lockstep is not None:
                found = yield from lockstep.exchange(core.number, key, env[at])
            given = [found[member] for member in members]
            env[out] = UNKNOWN
            if not any(isinstance(one, (Unknown, Ref)) for one in given):
                arrays = [np.asarray(one, dtype) for one in given]
                result = rule(arrays, members.index(core.number))
                env[out] = _values.known(np.asarray(result, dtype))

    return do


RULES: Rules = {Collective: _collective}
