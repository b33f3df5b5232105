"""Kernels on meshes of cores: `pl.kernel`. Its typed form stands in `overloads.py`."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import semaphore_errors
from safepallas._jax import compat
from safepallas._jax.core_types import CoreType
from safepallas._kernels.annotations import short_name
from safepallas._kernels.audit import Terms, among, terms_of
from safepallas._kernels.bodies import Body, holding, kernel_body
from safepallas._kernels.boundary import Layout
from safepallas._kernels.scopes import raw_outputs
from safepallas._semaphores.lifetime import describe
from safepallas._semaphores.meshes import FIX, core_of, is_core_mesh, mesh_of

# What all cores can reach belongs to none of them.
_SHARED = (pltpu.MemorySpace.HBM, pltpu.MemorySpace.VMEM_SHARED)


def _several(things: object) -> bool:
    return isinstance(things, Sequence) and not isinstance(things, str)


def _pairs(body: Any, mesh: Any) -> list[tuple[Callable[..., Any], Any]]:
    """Each body and the mesh that it runs on."""
    for one in mesh if _several(mesh) else (mesh,):
        if not is_core_mesh(one):
            what = "kernel: mesh must be a mesh of cores"
            raise semaphore_errors.spec(what, describe(one), FIX)
    if not _several(body) and not _several(mesh):
        return [(body, mesh)]
    if _several(body) and _several(mesh) and len(body) == len(mesh) > 0:
        return list(zip(body, mesh, strict=True))
    counts = [str(len(x)) if _several(x) else "one by itself" for x in (body, mesh)]
    what = "kernel: each of several bodies has a mesh of its own"
    got = f"bodies: {counts[0]}, meshes: {counts[1]}"
    raise semaphore_errors.spec(what, got, "Write kernel([f, g], ..., mesh=[f_mesh, g_mesh]).")


def _refuse_several(
    bodies: Sequence[Any],
    meshes: Sequence[Any],
    layout: Layout,
    name: str | None,
    interpret: object,
) -> None:
    """Refuse what JAX cannot run as several bodies of one kernel."""
    if interpret or compat.interprets_as_tpu(interpret):
        what = f"kernel: JAX {jax.__version__} interprets no kernel of several bodies"
        fix = "Compile it for a TPU, or interpret each body as a kernel of its own."
        got = f"interpret={interpret}" if interpret else "a context that interprets"
        raise semaphore_errors.spec(what, got, fix)
    names = [repr(name)] * len(bodies) if name else [*map(short_name, bodies)]
    if compat.NAMES_MUST_DIFFER and len(set(names)) < len(names):
        what = f"kernel: JAX {jax.__version__} needs another name for each of several bodies"
        fix = "Leave out name=, and give the functions names of their own."
        raise semaphore_errors.spec(what, " and ".join(names), fix)
    cores = [core_of(mesh) for mesh in meshes]
    if CoreType.TENSOR_CORE in cores and len(set(cores)) > 1:
        what = f"kernel: JAX {jax.__version__} runs no TensorCore beside SparseCores in one kernel"
        fix = "Give each a kernel of its own."
        raise semaphore_errors.spec(what, " and ".join(cores), fix)
    for request, raw in zip(layout.requests(), jax.tree_util.tree_leaves(layout.raw), strict=True):
        if mesh_of(raw) is None and getattr(raw, "memory_space", None) not in _SHARED:
            what = "kernel: with several bodies each request must name the cores that hold it"
            raise semaphore_errors.spec(what, describe(request), "Write sp.semaphore() @ mesh.")


def _bodies(
    pairs: list[tuple[Callable[..., Any], Any]], layout: Layout, terms: Terms
) -> list[Body]:
    """What Pallas traces for each body, in order: the last answers for all."""
    bodies: list[Body] = []
    for fn, mesh in pairs:
        before = [body.barrier for body in bodies]
        own = among(terms._replace(core=core_of(mesh)), before, len(pairs))
        bodies.append(kernel_body(fn, layout, own))
    return bodies


def kernel(
    body: object,
    out_type: object,
    *,
    mesh: Any,
    scratch_types: Any,
    compiler_params: object,
    interpret: object,
    **options: Any,
) -> Callable[..., Any]:
    """See `overloads.kernel`."""
    layout = Layout(scratch_types)
    options |= {
        "scratch_types": layout.raw,
        "compiler_params": compiler_params,
        "interpret": interpret,
    }
    raw_out = raw_outputs(out_type, interpret, "kernel")

    def make(body: Any) -> Callable[..., Any]:
        pairs = _pairs(body, mesh)
        if len(pairs) > 1:
            _refuse_several(body, mesh, layout, options.get("name"), interpret)
        # What the call promises may be read off JAX's settings, which are those of now.
        bodies = _bodies(pairs, layout, terms_of(compiler_params, interpret))
        raw: Any = bodies if _several(body) else bodies[0]
        return holding(body, pl.kernel(raw, raw_out, mesh=mesh, **options))

    if body is not None:
        return make(body)
    if _several(mesh):
        _pairs(body, mesh)
    return make
