"""What requests, kernels, the guard and reports say of a misuse, word for word."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas import testing
from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.diagnostics.details import Stated
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import Line, Program, UndecidedError
from safepallas._verify.report.report import Report

from .core_meshes import RENAMED, TENSOR_CORE_MESH, on_sparse_cores, scalar, tensor, vector
from .helpers import FLOATS, Message, assert_says, filled_in, says, trace_call


class Group(sp.Scratch):
    done = sp.semaphore()
    send = sp.dma_semaphore()
    eight = sp.vmem((8,), jnp.int32)


class Small(sp.Scratch):
    one = sp.dma_semaphore()


wrong = sp.semaphore()
wide = sp.dma_semaphore(2, 2)
single = sp.dma_semaphore()
page = sp.vmem((8, 128), jnp.float32)

DEVICES = jax.sharding.AbstractMesh((4,), ("x",))


def call(kernel: Any, scratch: Any = (), **options: Any) -> Any:
    return trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=scratch, **options))


def trace(body: Any, mesh: Any, scratch: Any = (), **options: Any) -> Any:
    call = sp.kernel(body, FLOATS, mesh=mesh, scratch_types=scratch, **options)
    return jax.eval_shape(call, FLOATS)


def guarded(act: Any, text: str) -> Message:
    """What a raw kernel that does `act` is told under guard."""

    def kernel(x: Any, o: Any, ready: Any, sems: Any, none: Any) -> None:
        act(ready, sems, none)

    def misuse() -> None:
        regular = pltpu.SemaphoreType.REGULAR
        with testing.guard_raw_pallas(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of DeviceIdType, JAX 0.12
            scratch = [regular, regular((2, 3)), regular((0,))]
            trace_call(pl.pallas_call(kernel, FLOATS, scratch_shapes=scratch))

    return says(misuse, text)


def barrier_kernel(x: Any, o: Any) -> None:
    sp.wait(sp.get_barrier_semaphore())


def reading_kernel(x: Any, o: Any, s: Group) -> None:
    o[0, 0] = sp.read(s.done).astype(jnp.float32)


def counting_kernel(x: Any, o: Any, s: Group) -> None:
    sp.async_copy_counted(x, o, s.done)


def adding_kernel(x: Any, o: Any, s: Group) -> None:
    sp.async_copy(x, o, s.send, add=True)


def gathering_kernel(x: Any, o: Any, s: Group) -> None:
    sp.async_copy(x.at[s.eight], o, s.send)


def plain(x: Any, o: Any, *rest: Any, **scratch: Any) -> None: ...


def annotated_kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None: ...


def array_kernel(x: Any, o: Any, a: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None: ...


def string_kernel(x: "sp.Ref", o: "sp.Ref", *sems: "sp.DmaSemaphore | None") -> None: ...


def data_kernel(x: sp.Semaphore, o: sp.Ref) -> None: ...


def group_kernel(x: sp.Ref, o: sp.Ref, s: Group) -> None: ...


def scoping_kernel(x: sp.Ref, o: sp.Ref) -> None:
    def scoped_body(sem: sp.DmaSemaphore) -> None: ...

    sp.run_scoped(scoped_body, wrong)


def rank_five(x: Any, o: Any, s: Any) -> None: ...


def instance() -> Any:
    leaked: list[Any] = []
    call(lambda x, o, s: leaked.append(s), Small)
    return leaked[0]


def field(value: Any, name: str = "field") -> Any:
    return type("Bad", (sp.Scratch,), {name: value})


def grid_spec(scratch: Any) -> Any:
    return pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=0, grid=(1,), scratch_shapes=[scratch])


def other(*refs: Any, **scratch: Any) -> None: ...


def scoping(x: Any, o: Any) -> None:
    sp.run_scoped(lambda sem: None, single @ tensor())


def copying(x: Any, o: Any, a: Any, b: Any) -> None:
    sp.async_copy(x, o, a)


def waiting(x: Any, o: Any, a: Any, b: Any) -> None:
    sp.wait(b)


def logical_coordinates(ready: Any, sems: Any, none: Any) -> None:
    pl.semaphore_signal(ready, device_id=(1,), device_id_type=pl.DeviceIdType.LOGICAL)


def many_cores() -> Report:
    program = Program([[] for _ in range(9)], {}, [])
    return Report("safe", [], program, analyse(program))


LINE = Line("ring.py", 16, "kernel")
LEAK = Finding(FindingKind.LEAK, (LINE,), Stated("1 is left on sem. Wait for it."))
UNSAFE = Report("unsafe", [LEAK])
UNDECIDED = Report("undecided", [], undecided=UndecidedError("the value of n is not known", LINE))
INTERPRETER = "interpret=pltpu.InterpretParams(...)"
CHANGE = "Change the annotation, or the request to the allocator. [annotation]"
CONTAINER = "the allocator takes a tuple of specs, a dict of specs, or a Scratch class"
CONTAINER_FIX = "Write (spec,) for one; pass the Scratch class itself, not an instance. [spec]"
FIELD = "a field of a Scratch must be one request of safepallas"
FIELD_FIX = "Write sp.vmem, sp.smem or sp.dma_semaphore(...), and a field for each. [spec]"
RANKS = "an array of semaphores has 1 to 4 dimensions"
FIX = (
    f"Take {TENSOR_CORE_MESH} or, for SparseCores, plsc.VectorSubcoreMesh(...) or "
    "plsc.ScalarSubcoreMesh(...); a mesh of devices belongs to jax.shard_map. [spec]"
)
SEVERAL = "kernel: each of several bodies has a mesh of its own"
SEVERAL_FIX = "Write kernel([f, g], ..., mesh=[f_mesh, g_mesh]). [spec]"
CORES = "kernel: with several bodies each request must name the cores that hold it"

NAMES = f"kernel: JAX {jax.__version__} needs another name for each of several bodies"
NAMES_FIX = "Leave out name=, and give the functions names of their own. [spec]"
PLACE = "(a parameter of kernel <<def kernel>>)"

MESSAGES: dict[str, Message] = {
    # Requests and annotations.
    "interpreted count": says(
        lambda: call(counting_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def counting_kernel>> starts a copy (<<use sp.async_copy_counted by "
        f"counting_kernel>>) that adds 1 to a regular semaphore, and {INTERPRETER} adds its bytes "
        "instead, so that waits end too early. Use interpret=True, or compile for a TPU. "
        "[interpreted-copy]",
    ),
    "interpreted add": says(
        lambda: call(adding_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def adding_kernel>> starts a copy (<<use sp.async_copy(x, o, s.send, add by "
        f"adding_kernel>>) that adds to its destination, and {INTERPRETER} overwrites it instead. "
        "Compile for a TPU. [interpreted-copy]",
    ),
    "interpreted gather": says(
        lambda: call(gathering_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def gathering_kernel>> starts a copy (<<use sp.async_copy(x.at[s.eight] by "
        f"gathering_kernel>>) that takes rows by an array or a ref of indices, and {INTERPRETER} "
        "cannot follow them. Use interpret=True, or compile for a TPU. [interpreted-copy]",
    ),
    "barrier without id": says(
        lambda: call(barrier_kernel),
        "kernel <<def barrier_kernel>> uses the barrier semaphore (<<use "
        "sp.get_barrier_semaphore()) by barrier_kernel>>) and has no collective_id. "
        "Pass compiler_params=pltpu.CompilerParams(collective_id=...): an int that "
        "all devices agree on and no other communication pattern uses. [missing-collective-id]",
    ),
    "id without barrier": says(
        lambda: call(plain, compiler_params=pltpu.CompilerParams(collective_id=3)),
        "kernel <<def plain>> has collective_id=3 and never calls "
        "sp.get_barrier_semaphore(). Leave the id out, or set "
        "allow_collective_id_without_custom_barrier=True in CompilerParams. [unused-collective-id]",
    ),
    "interpreted read": says(
        lambda: call(reading_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def reading_kernel>> reads a semaphore (<<use sp.read(s.done) by reading_kernel>>"
        "), and JAX has no rule for that "
        "under interpret=pltpu.InterpretParams(...). Use interpret=True, or compile for a TPU. "
        "[interpreted-read]",
    ),
    "handle against an annotation": says(
        lambda: call(annotated_kernel, (wrong,)),
        "kernel <<def annotated_kernel>>: parameter 'sem' is annotated DmaSemaphore, but it "
        f"receives Semaphore 'sem' (allocated at <<at wrong = >>). {CHANGE}",
    ),
    "array against an annotation": says(
        lambda: call(array_kernel, (wide,)),
        "kernel <<def array_kernel>>: parameter 'a' is annotated SemaphoreArray[DmaSemaphore, "
        "tuple[int]], but it receives SemaphoreArray[DmaSemaphore] of shape (2, 2) 'a' (allocated "
        f"at <<at wide = >>). {CHANGE}",
    ),
    "handle among others against a string": says(
        lambda: call(string_kernel, (sp.dma_semaphore(), wrong)),
        "kernel <<def string_kernel>>: parameter 'sems[1]' is annotated sp.DmaSemaphore | None, "
        f"but it receives Semaphore 'sems[1]' (allocated at <<at wrong = >>). {CHANGE}",
    ),
    "data against an annotation": says(
        lambda: call(data_kernel),
        "kernel <<def data_kernel>>: parameter 'x' is annotated Semaphore, but it receives a raw "
        f"Pallas ref (float32[8,128]). {CHANGE}",
    ),
    "raw request against an annotation": says(
        lambda: call(annotated_kernel, (pltpu.SemaphoreType.REGULAR,)),
        "kernel <<def annotated_kernel>>: parameter 'sem' is annotated DmaSemaphore, but it "
        f"receives Semaphore 'sem' (from outside). {CHANGE}",
    ),
    "group against an annotation": says(
        lambda: call(group_kernel, Small),
        "kernel <<def group_kernel>>: parameter 's' is annotated Group, but it receives Small "
        f"<Small one>. {CHANGE}",
    ),
    "body against an annotation": says(
        lambda: call(scoping_kernel),
        "run_scoped <<def scoped_body>>: parameter 'sem' is annotated DmaSemaphore, but it "
        f"receives Semaphore 'sem' (allocated at <<at wrong = >>). {CHANGE}",
    ),
    "size": says(
        lambda: sp.dma_semaphore(2.0),
        "dma_semaphore: a size must be an int, got float 2.0. Write the sizes one by one, as in "
        "dma_semaphore(2, 3). [spec]",
    ),
    "negative size": says(
        lambda: sp.semaphore(2, -1),
        "semaphore: a size must not be negative, got -1. Sizes are counts, from 0 up. [spec]",
    ),
    "size of a buffer": says(
        lambda: sp.smem((True,), jnp.int32),
        "smem: a size must be an int, got bool True. Write the sizes one by one, as in smem(2, 3). "
        "[spec]",
    ),
    "shape of a buffer": says(
        lambda: sp.vmem(8, jnp.float32),
        "vmem: a shape must be a tuple of ints, got int 8. Write vmem((8, 128), dtype). [spec]",
    ),
    "rank": says(
        lambda: sp.barrier_semaphore(1, 1, 1, 1, 1),
        f"barrier_semaphore: {RANKS}, got 5. Fold some of them into one. [spec]",
    ),
    "rank of a raw request": says(
        lambda: call(rank_five, (pltpu.SemaphoreType.DMA((1, 2, 1, 2, 1)),)),
        f"s: {RANKS}, got a raw Pallas ref to a dma semaphore (dma_sem[1,2,1,2,1]). Fold some of "
        "them into one. [spec]",
    ),
    "spec alone": says(
        lambda: call(plain, wrong),
        f"{CONTAINER}, got <Spec semaphore() at <<at wrong = >>>. {CONTAINER_FIX}",
    ),
    "request alone": says(
        lambda: call(plain, pltpu.SemaphoreType.DMA),
        f"{CONTAINER}, got SemaphoreType <SemaphoreType.DMA: 'dma'>. {CONTAINER_FIX}",
    ),
    "scratch instance": says(
        lambda: call(plain, instance()),
        f"{CONTAINER}, got Small <Small one>. {CONTAINER_FIX}",
    ),
    "no request": says(
        lambda: call(plain, (np.float32(1),)),
        "a request to the allocator must be a Spec, got float32 np.float32(1.0). Use "
        "sp.dma_semaphore(), sp.semaphore(), sp.vmem(...), or a Scratch class alone. [spec]",
    ),
    "list in a field": says(
        lambda: field([sp.Semaphore]),
        f"Bad.field: {FIELD}, got list [<class 'safepallas._semaphores.handles.Semaphore'>]. "
        f"{FIELD_FIX}",
    ),
    "raw request in a field": says(
        lambda: field(pltpu.SemaphoreType.DMA),
        f"Bad.field: {FIELD}, got SemaphoreType <SemaphoreType.DMA: 'dma'>. {FIELD_FIX}",
    ),
    "field of a taken name": says(
        lambda: field(wrong, "_fields"),
        "Bad._fields: the name is taken, got _fields. Rename it. [spec]",
    ),
    "scratch in two places": says(
        lambda: call(plain, (wrong,), grid_spec=grid_spec(pltpu.SemaphoreType.DMA)),
        "with a grid_spec, scratch stands in scratch_shapes= of pallas_call, got some in the "
        "grid_spec. Move all of it to scratch_shapes=. [spec]",
    ),
    # Kernels on meshes of cores.
    "no mesh": says(
        lambda: trace(plain, "core"),
        f"kernel: mesh must be a mesh of cores, got str 'core'. {FIX}",
    ),
    "mesh of devices": says(
        lambda: trace(plain, DEVICES),
        f"kernel: mesh must be a mesh of cores, got AbstractMesh {DEVICES!r}. {FIX}",
    ),
    "one mesh for several": says(
        lambda: trace([plain, plain], tensor()),
        f"{SEVERAL}, got bodies: 2, meshes: one by itself. {SEVERAL_FIX}",
    ),
    "too few meshes": says(
        lambda: trace([plain, plain], [tensor()]),
        f"{SEVERAL}, got bodies: 2, meshes: 1. {SEVERAL_FIX}",
    ),
    "several meshes for a decorator": says(
        lambda: sp.kernel(mesh=[tensor(), tensor()]),
        f"{SEVERAL}, got bodies: one by itself, meshes: 2. {SEVERAL_FIX}",
    ),
    "both kinds of core": says(
        on_sparse_cores(lambda: trace([plain, other], [tensor(), scalar()])),
        f"kernel: JAX {jax.__version__} runs no TensorCore beside SparseCores in one kernel, got "
        "TC and SC_SCALAR_SUBCORE. Give each a kernel of its own. [spec]",
    ),
    "several bodies, interpreted": says(
        on_sparse_cores(
            lambda: trace([plain, other], [vector(), scalar()], interpret=True),
        ),
        f"kernel: JAX {jax.__version__} interprets no kernel of several bodies, got "
        "interpret=True. Compile it for a TPU, or interpret each body as a kernel of its own. "
        "[spec]",
    ),
    "scratch of nobody": says(
        on_sparse_cores(lambda: trace([plain, other], [vector(), scalar()], (single,))),
        f"{CORES}, got <Spec dma_semaphore() at <<at single = >>>. "
        "Write sp.semaphore() @ mesh. [spec]",
    ),
    "raw scratch of nobody": says(
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
            "one name for several": says(
                on_sparse_cores(lambda: trace([plain, plain], [vector(), scalar()])),
                f"{NAMES}, got 'plain' and 'plain'. {NAMES_FIX}",
            ),
            "a name given to several": says(
                on_sparse_cores(
                    lambda: trace([plain, copying], [vector(), scalar()], name="copies")
                ),
                f"{NAMES}, got 'copies' and 'copies'. {NAMES_FIX}",
            ),
        }
    ),
    "on the name of an axis": says(
        lambda: single @ "core",
        f"dma_semaphore() @ mesh: needs a mesh of cores, got str 'core'. {FIX}",
    ),
    "on cores twice": says(
        lambda: single @ tensor() @ tensor(),
        "dma_semaphore() @ TensorCoreMesh @ mesh: a request names its cores once, got another "
        "mesh. Make a request for each mesh. [spec]",
    ),
    "memory that is not there": says(
        on_sparse_cores(lambda: page @ scalar()),
        "vmem((8, 128), float32) @ mesh: the cores must have such memory, got cores of type "
        "SC_SCALAR_SUBCORE. Take another kind of memory, or the mesh of the cores that have it. "
        "[spec]",
    ),
    "in a scope": says(
        lambda: trace(scoping, tensor()),
        "run_scoped: a semaphore @ mesh comes from scratch of a kernel alone, got <Spec "
        "dma_semaphore() @ TensorCoreMesh at <<at single = >>>. Leave out the mesh: "
        f"JAX {jax.__version__} has room here for this core only. [spec]",
    ),
    "waiting for others": says(
        on_sparse_cores(
            lambda: trace(
                [copying, waiting],
                [vector(), scalar()],
                (sp.dma_semaphore() @ vector(), sp.semaphore() @ vector()),
            )
        ),
        "kernel <<def waiting>> waits, reads or copies with a semaphore of other cores (<<use "
        "sp.wait(b) by waiting>>). A core waits for semaphores of its own, and may signal those "
        "of others: allocate it @ the mesh of this body. [foreign-semaphore]",
    ),
    # Raw kernels under guard.
    "raw_index_range": guarded(
        lambda ready, sems, none: pl.semaphore_signal(sems.at[1, -1]),
        f"SemaphoreArray[Semaphore] of shape (2, 3) 'sems' {PLACE}: index -1 is out of bounds for "
        "dimension 1 of size 3. Raw Pallas checks no index of a semaphore, and a TPU counts none "
        "from the end: use 0 to 2. [index-range]",
    ),
    "raw_index_range, none": guarded(
        lambda ready, sems, none: pl.semaphore_signal(none.at[0]),
        f"SemaphoreArray[Semaphore] of shape (0,) 'none' {PLACE}: index 0 is out of bounds for "
        "dimension 0 of size 0. Raw Pallas checks no index of a semaphore, and a TPU counts none "
        "from the end: it holds no semaphore. [index-range]",
    ),
    "wait_option": guarded(
        lambda ready, sems, none: pl.semaphore_wait(sems.at[0, 2], decrement=False),
        f"wait: decrement must be True, got bool False, with Semaphore 'sems[0, 2]' {PLACE}. The "
        "TPU lowering drops the flag and takes all the same: wait as usual, and signal what must "
        "stay. [wait-option]",
    ),
    "device_id_logical": guarded(
        logical_coordinates,
        "signal: device_id must be one int or traced integer scalar with DeviceIdType.LOGICAL, "
        f"got tuple (1,), for Semaphore 'ready' {PLACE}. For mesh coordinates leave "
        "device_id_type out. [device-id-type]",
    ),
    # Reports of a verification.
    "unsafe": says(
        UNSAFE.raise_if_unsafe,
        "unsafe.\n\n1. leak at ring.py:16\n   1 is left on sem. Wait for it. [unsafe-protocol]",
    ),
    "undecided": says(
        UNDECIDED.raise_if_unsafe,
        "undecided.\n\nUndecided at ring.py:16: the value of n is not known. Nothing is claimed. "
        "[unsafe-protocol]",
    ),
    "drawing what was found before it ran": says(
        lambda: UNSAFE.to_svg("nowhere.svg"),
        "there is no timeline to draw: the protocol stops at ring.py:16. The text of the report, "
        "str(report), says more. [picture]",
    ),
    "a trace of what is undecided": says(
        lambda: UNDECIDED.to_perfetto("nowhere.json"),
        "there is no timeline to draw: the protocol is undecided at ring.py:16. The text of the "
        "report, str(report), says more. [picture]",
    ),
    "too many cores": says(
        lambda: many_cores().to_svg("nowhere.svg"),
        "a picture shows 8 cores at most, and this protocol runs on 9. Verify it for 8 devices to "
        "draw it, or use to_perfetto, which takes any number. [picture]",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)


LIMIT = (
    "kernel <<def plain>> holds 480 semaphores at once. The TPU compiler has room for 512 "
    "of 4 bytes each (2.0 KiB on v5e, v5p and v6e) and takes some of them for itself: 424 to 440 "
    "compiled. With more expect 'Ran out of memory in memory space sflag'. Let copies "
    "share semaphores. [semaphore-limit]"
)


def test_warning() -> None:
    with pytest.warns(sp.errors.SemaphoreLimitWarning) as caught:
        call(plain, (sp.dma_semaphore(480),))
    assert [str(warning.message) for warning in caught] == [filled_in(LIMIT, __file__)]


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
def test_warning_of_a_small_core(name: str) -> None:
    mesh, count, text = LIMITS[name]
    on_sparse_cores(lambda: trace(plain, mesh(), (sp.dma_semaphore(count - 1),)))()
    with pytest.warns(sp.errors.SemaphoreLimitWarning) as caught:
        on_sparse_cores(lambda: trace(plain, mesh(), (sp.dma_semaphore(count),)))()
    assert [str(warning.message) for warning in caught] == [filled_in(text, __file__)]
