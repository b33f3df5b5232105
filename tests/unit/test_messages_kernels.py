"""The messages of kernels on meshes of cores, word for word."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .core_meshes import RENAMED, TENSOR_CORE_MESH, on_sparse_cores, scalar, tensor, vector
from .helpers import FLOATS, Message, assert_says, filled_in, line_of

one = sp.dma_semaphore()
page = sp.vmem((8, 128), jnp.float32)

DEVICES = jax.sharding.AbstractMesh((4,), ("x",))


def plain(*refs: Any, **scratch: Any) -> None: ...


def other(*refs: Any, **scratch: Any) -> None: ...


def scoping(x: Any, o: Any) -> None:
    sp.run_scoped(lambda sem: None, one @ tensor())


def copying(x: Any, o: Any, a: Any, b: Any) -> None:
    sp.async_copy(x, o, a)


def waiting(x: Any, o: Any, a: Any, b: Any) -> None:
    sp.wait(b)


def trace(body: Any, mesh: Any, scratch: Any = (), **options: Any) -> Any:
    call = sp.kernel(body, FLOATS, mesh=mesh, scratch_types=scratch, **options)
    return jax.eval_shape(call, FLOATS)


def request(misuse: Callable[[], Any], text: str) -> Message:
    return Message(sp.errors.SpecError, misuse, text)


def column(text: str, part: str) -> int:
    return line_of(__file__, text)[1].index(part)


FIX = (
    f"Take {TENSOR_CORE_MESH} or, for SparseCores, plsc.VectorSubcoreMesh(...) or "
    "plsc.ScalarSubcoreMesh(...); a mesh of devices belongs to jax.shard_map. [spec]"
)
SEVERAL = "kernel: each of several bodies has a mesh of its own"
SEVERAL_FIX = "Write kernel([f, g], ..., mesh=[f_mesh, g_mesh]). [spec]"
CORES = "kernel: with several bodies each request must name the cores that hold it"

NAMES = f"kernel: JAX {jax.__version__} needs another name for each of several bodies"
NAMES_FIX = "Leave out name=, and give the functions names of their own. [spec]"

MESSAGES: dict[str, Message] = {
    "no mesh": request(
        lambda: trace(plain, "core"),
        f"kernel: mesh must be a mesh of cores, got str 'core'. {FIX}",
    ),
    "mesh of devices": request(
        lambda: trace(plain, DEVICES),
        f"kernel: mesh must be a mesh of cores, got AbstractMesh {DEVICES!r}. {FIX}",
    ),
    "one mesh for several": request(
        lambda: trace([plain, plain], tensor()),
        f"{SEVERAL}, got bodies: 2, meshes: one by itself. {SEVERAL_FIX}",
    ),
    "too few meshes": request(
        lambda: trace([plain, plain], [tensor()]),
        f"{SEVERAL}, got bodies: 2, meshes: 1. {SEVERAL_FIX}",
    ),
    "several meshes for a decorator": request(
        lambda: sp.kernel(mesh=[tensor(), tensor()]),
        f"{SEVERAL}, got bodies: one by itself, meshes: 2. {SEVERAL_FIX}",
    ),
    "both kinds of core": request(
        on_sparse_cores(lambda: trace([plain, other], [tensor(), scalar()])),
        f"kernel: JAX {jax.__version__} runs no TensorCore beside SparseCores in one kernel, got "
        "TC and SC_SCALAR_SUBCORE. Give each a kernel of its own. [spec]",
    ),
    "several bodies, interpreted": request(
        on_sparse_cores(
            lambda: trace([plain, other], [vector(), scalar()], interpret=True),
        ),
        f"kernel: JAX {jax.__version__} interprets no kernel of several bodies, got "
        "interpret=True. Compile it for a TPU, or interpret each body as a kernel of its own. "
        "[spec]",
    ),
    "scratch of nobody": request(
        on_sparse_cores(lambda: trace([plain, other], [vector(), scalar()], (one,))),
        f"{CORES}, got <Spec dma_semaphore() at <<at one = >>>. "
        "Write sp.semaphore() @ mesh. [spec]",
    ),
    "raw scratch of nobody": request(
        on_sparse_cores(
            lambda: trace(
                [plain, other], [vector(), scalar()], {"sem": pltpu.SemaphoreType.REGULAR}
            )
        ),
        f"{CORES}, got SemaphoreType <SemaphoreType.REGULAR: 'regular'>. "
        "Write sp.semaphore() @ mesh. [spec]",
    ),
    **(
        {}
        if RENAMED
        else {
            "one name for several": request(
                on_sparse_cores(lambda: trace([plain, plain], [vector(), scalar()])),
                f"{NAMES}, got 'plain' and 'plain'. {NAMES_FIX}",
            ),
            "a name given to several": request(
                on_sparse_cores(
                    lambda: trace([plain, copying], [vector(), scalar()], name="copies")
                ),
                f"{NAMES}, got 'copies' and 'copies'. {NAMES_FIX}",
            ),
        }
    ),
    "on the name of an axis": request(
        lambda: one @ "core",
        f"dma_semaphore() @ mesh: needs a mesh of cores, got str 'core'. {FIX}",
    ),
    "on cores twice": request(
        lambda: one @ tensor() @ tensor(),
        "dma_semaphore() @ TensorCoreMesh @ mesh: a request names its cores once, got another "
        "mesh. Make a request for each mesh. [spec]",
    ),
    "memory that is not there": request(
        on_sparse_cores(lambda: page @ scalar()),
        "vmem((8, 128), float32) @ mesh: the cores must have such memory, got cores of type "
        "SC_SCALAR_SUBCORE. Take another kind of memory, or the mesh of the cores that have it. "
        "[spec]",
    ),
    "in a scope": request(
        lambda: trace(scoping, tensor()),
        "run_scoped: a semaphore @ mesh comes from scratch of a kernel alone, got <Spec "
        "dma_semaphore() @ TensorCoreMesh at <<at one = >>>. Leave out the mesh: "
        f"JAX {jax.__version__} has room here for this core only. [spec]",
    ),
    "waiting for others": Message(
        sp.errors.ForeignSemaphoreError,
        on_sparse_cores(
            lambda: trace(
                [copying, waiting],
                [vector(), scalar()],
                (sp.dma_semaphore() @ vector(), sp.semaphore() @ vector()),
            )
        ),
        "kernel <<def waiting>> waits, reads or copies with a semaphore of other cores (<<at "
        f"sp.wait(b)>>:{column('sp.wait(b)', 'sp.')} (waiting)). A core waits for semaphores of "
        "its own, and may signal those of others: allocate it @ the mesh of this body. "
        "[foreign-semaphore]",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)


LIMITS = {
    "vector subcore": (
        vector,
        25,
        "kernel <<def plain>> holds 25 semaphores at once. The TPU compiler has room for 32 of "
        "4 bytes each (128 bytes on a vector subcore of v5p and v6e) and takes some of them for "
        "itself: 24 compiled. With more expect 'Ran out of memory in memory space "
        "sparse_core_tile_sflag'. Let copies share semaphores. [semaphore-limit]",
    ),
    "scalar subcore": (
        scalar,
        7000,
        "kernel <<def plain>> holds 7000 semaphores at once. The TPU compiler has room for 7168 of "
        "4 bytes each (28 KiB on a scalar subcore of v5p and v6e) and takes some of them for "
        "itself: 7018 compiled. With more expect 'Ran out of memory in memory space "
        "sparse_core_sequencer_sflag'. Let copies share semaphores. [semaphore-limit]",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_warning(name: str) -> None:
    mesh, count, text = LIMITS[name]
    on_sparse_cores(lambda: trace(plain, mesh(), (sp.dma_semaphore(count - 1),)))()
    with pytest.warns(sp.errors.SemaphoreLimitWarning) as caught:
        on_sparse_cores(lambda: trace(plain, mesh(), (sp.dma_semaphore(count),)))()
    assert [str(warning.message) for warning in caught] == [filled_in(text, __file__)]
