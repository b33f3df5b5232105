"""The messages of copies, whole kernels, annotations and requests, word for word."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import FLOATS, Message, assert_says, filled_in, line_of, trace_call


class Group(sp.Scratch):
    done = sp.semaphore()
    send = sp.dma_semaphore()
    slots = sp.dma_semaphore(2)
    ints = sp.vmem((8, 128), jnp.int32)
    rows = sp.vmem((2, 128), jnp.float32)
    table = sp.smem((8, 128), jnp.float32)
    eight = sp.vmem((8,), jnp.int32)


class Small(sp.Scratch):
    one = sp.dma_semaphore()


wrong = sp.semaphore()
wide = sp.dma_semaphore(2, 2)


def call(kernel: Any, scratch: Any = (), **options: Any) -> Any:
    return trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=scratch, **options))


def row(error: type[Exception], body: Callable[[Any, Any, Any], Any], text: str) -> Message:
    """What a kernel with that body is answered."""

    def kernel(x: Any, o: Any, s: Group) -> None:
        body(x, o, s)

    return Message(error, lambda: call(kernel, Group), text)


def request(make: Callable[[], Any], text: str) -> Message:
    """What a request that cannot be met is answered."""
    return Message(sp.errors.SpecError, make, text)


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


INTERPRETER = "interpret=pltpu.InterpretParams(...)"


def plain_kernel(x: Any, o: Any, *rest: Any) -> None: ...


def annotated_kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None: ...


def array_kernel(x: Any, o: Any, a: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None: ...


def string_kernel(x: "sp.Ref", o: "sp.Ref", *sems: "sp.DmaSemaphore | None") -> None: ...


def data_kernel(x: sp.Semaphore, o: sp.Ref) -> None: ...


def group_kernel(x: sp.Ref, o: sp.Ref, s: Group) -> None: ...


def scoping_kernel(x: sp.Ref, o: sp.Ref) -> None:
    def scoped_body(sem: sp.DmaSemaphore) -> None: ...

    sp.run_scoped(scoped_body, wrong)


def column(text: str, part: str) -> int:
    """Where `part` begins in the line that begins with `text`."""
    return line_of(__file__, text)[1].index(part)


def rank_five(x: Any, o: Any, s: Any) -> None: ...


def instance() -> Any:
    leaked: list[Any] = []
    call(lambda x, o, s: leaked.append(s), Small)
    return leaked[0]


def field(value: Any, name: str = "field") -> Any:
    return type("Bad", (sp.Scratch,), {name: value})


def grid_spec(scratch: Any) -> Any:
    return pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=0, grid=(1,), scratch_shapes=[scratch])


REF_FIX = (
    "Pass the ref itself or a view of it, ref.at[...]; ref[...] is already loaded. [not-a-ref]"
)
MISMATCH = "Take the view that fits: ref.at[...]. [copy-mismatch]"
CHANGE = "Change the annotation, or the request to the allocator. [annotation]"
SIZES = "Write the sizes one by one, as in dma_semaphore(2, 3). [spec]"
CONTAINER = "the allocator takes a tuple of specs, a dict of specs, or a Scratch class"
CONTAINER_FIX = "Write (spec,) for one; pass the Scratch class itself, not an instance. [spec]"
REQUEST = "a request to the allocator must be a Spec"
REQUEST_FIX = (
    "Use sp.dma_semaphore(), sp.semaphore(), sp.vmem(...), or a Scratch class alone. [spec]"
)
FIELD = "a field of a Scratch must be one request of safepallas"
FIELD_FIX = "Write sp.vmem, sp.smem or sp.dma_semaphore(...), and a field for each. [spec]"
RANKS = "an array of semaphores has 1 to 4 dimensions"
ADOPT_FIX = "Adopt it with the spec of what it is. [adopt]"

MESSAGES: dict[str, Message] = {
    "loaded source": row(
        sp.errors.NotARefError,
        lambda x, o, s: sp.sync_copy(x[...], o),
        f"sync_copy: src must be a ref that holds data, got an array float32[8,128]. {REF_FIX}",
    ),
    "semaphore for data": row(
        sp.errors.NotARefError,
        lambda x, o, s: sp.async_copy(x, s.done, s.send),
        f"async_copy: dst must be a ref that holds data, got Semaphore <<done>>. {REF_FIX}",
    ),
    "tuple for data": row(
        sp.errors.NotARefError,
        lambda x, o, s: sp.wait_bytes(s.send, (1, 2)),
        f"wait_bytes: like must be a ref that holds data, got tuple (1, 2). {REF_FIX}",
    ),
    "long value for data": row(
        sp.errors.NotARefError,
        lambda x, o, s: sp.wait_bytes(s.send, "x" * 99),
        f"wait_bytes: like must be a ref that holds data, got str '{'x' * 56}.... {REF_FIX}",
    ),
    "shapes": row(
        sp.errors.CopyMismatchError,
        lambda x, o, s: sp.async_copy(x, s.rows, s.send),
        "async_copy: source and destination must have the same shape, got float32[8,128] and "
        f"float32[2,128], with DmaSemaphore <<send>>. {MISMATCH}",
    ),
    "dtypes": row(
        sp.errors.CopyMismatchError,
        lambda x, o, s: sp.sync_copy(s.ints, o),
        "sync_copy: source and destination must have the same dtype, got int32[8,128] and "
        f"float32[8,128], with a semaphore of its own. {MISMATCH}",
    ),
    "priority": row(
        sp.errors.CopyOptionError,
        lambda x, o, s: sp.async_copy(x, o, s.send, priority=-1),
        "start of a local copy: priority must be 0 or 1, got int -1, with DmaSemaphore <<send>>. "
        "[copy-option]",
    ),
    "add": row(
        sp.errors.CopyOptionError,
        lambda x, o, s: sp.make_async_copy(x, o, s.slots[1]).start(add=1),
        "start of a local copy: add must be True or False, got int 1, with "
        "DmaSemaphore <<slots[1]>>. "
        "[copy-option]",
    ),
    "counted in SMEM": row(
        sp.errors.CountedCopyError,
        lambda x, o, s: sp.async_copy_counted(x, s.table, s.done),
        "async_copy_counted: dst must not be in SMEM, got a raw Pallas ref (float32[8,128]), with "
        "Semaphore <<done>>. The TPU compiler counts no copy from or to SMEM: copy on "
        "sp.dma_semaphore() instead. [counted-copy]",
    ),
    "interpreted count": Message(
        sp.errors.InterpretedCopyError,
        lambda: call(counting_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def counting_kernel>> starts a copy (<<at sp.async_copy_counted(x, o>>:"
        f"{column('sp.async_copy_counted(x, o', 'sp.')} (counting_kernel)) that adds 1 to a "
        f"regular semaphore, and {INTERPRETER} adds its bytes instead, so that waits end too "
        "early. Use interpret=True, or compile for a TPU. [interpreted-copy]",
    ),
    "interpreted add": Message(
        sp.errors.InterpretedCopyError,
        lambda: call(adding_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def adding_kernel>> starts a copy (<<at sp.async_copy(x, o, s.send, add>>:"
        f"{column('sp.async_copy(x, o, s.send, add', 'sp.')} (adding_kernel)) that adds to its "
        f"destination, and {INTERPRETER} overwrites it instead. Compile for a TPU. "
        "[interpreted-copy]",
    ),
    "interpreted gather": Message(
        sp.errors.InterpretedCopyError,
        lambda: call(gathering_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def gathering_kernel>> starts a copy (<<at sp.async_copy(x.at[s.eight]>>:"
        f"{column('sp.async_copy(x.at[s.eight]', 'sp.')} (gathering_kernel)) that takes rows by "
        f"an array or a ref of indices, and {INTERPRETER} cannot follow them. Use interpret=True, "
        "or compile for a TPU. [interpreted-copy]",
    ),
    "add of a sync_copy": row(
        sp.errors.CopyOptionError,
        lambda x, o, s: sp.sync_copy(x, o, add="yes"),
        "sync_copy: add must be True or False, got str 'yes', with a semaphore of its own. "
        "[copy-option]",
    ),
    "barrier without id": Message(
        sp.errors.MissingCollectiveIdError,
        lambda: call(barrier_kernel),
        "kernel <<def barrier_kernel>> uses the barrier semaphore (<<at sp.wait(sp.get_barrier>>:"
        f"{column('sp.wait(sp.get_barrier', 'sp.get_barrier')} (barrier_kernel)) and has no "
        "collective_id. Pass compiler_params=pltpu.CompilerParams(collective_id=...): an int that "
        "all devices agree on and no other communication pattern uses. [missing-collective-id]",
    ),
    "id without barrier": Message(
        sp.errors.UnusedCollectiveIdError,
        lambda: call(plain_kernel, compiler_params=pltpu.CompilerParams(collective_id=3)),
        "kernel <<def plain_kernel>> has collective_id=3 and never calls "
        "sp.get_barrier_semaphore(). Leave the id out, or set "
        "allow_collective_id_without_custom_barrier=True in CompilerParams. [unused-collective-id]",
    ),
    "interpreted read": Message(
        sp.errors.InterpretedReadError,
        lambda: call(reading_kernel, Group, interpret=pltpu.InterpretParams()),
        "kernel <<def reading_kernel>> reads a semaphore (<<at o[0, 0] = sp.read>>:"
        f"{column('o[0, 0] = sp.read', 'sp.read')} (reading_kernel)), and JAX has no rule for that "
        "under interpret=pltpu.InterpretParams(...). Use interpret=True, or compile for a TPU. "
        "[interpreted-read]",
    ),
    "handle against an annotation": Message(
        sp.errors.AnnotationError,
        lambda: call(annotated_kernel, (wrong,)),
        "kernel <<def annotated_kernel>>: parameter 'sem' is annotated DmaSemaphore, but it "
        f"receives Semaphore 'sem' (allocated at <<at wrong = >>). {CHANGE}",
    ),
    "array against an annotation": Message(
        sp.errors.AnnotationError,
        lambda: call(array_kernel, (wide,)),
        "kernel <<def array_kernel>>: parameter 'a' is annotated SemaphoreArray[DmaSemaphore, "
        "tuple[int]], but it receives SemaphoreArray[DmaSemaphore] of shape (2, 2) 'a' (allocated "
        f"at <<at wide = >>). {CHANGE}",
    ),
    "handle among others against a string": Message(
        sp.errors.AnnotationError,
        lambda: call(string_kernel, (sp.dma_semaphore(), wrong)),
        "kernel <<def string_kernel>>: parameter 'sems[1]' is annotated sp.DmaSemaphore | None, "
        f"but it receives Semaphore 'sems[1]' (allocated at <<at wrong = >>). {CHANGE}",
    ),
    "data against an annotation": Message(
        sp.errors.AnnotationError,
        lambda: call(data_kernel),
        "kernel <<def data_kernel>>: parameter 'x' is annotated Semaphore, but it receives a raw "
        f"Pallas ref (float32[8,128]). {CHANGE}",
    ),
    "raw request against an annotation": Message(
        sp.errors.AnnotationError,
        lambda: call(annotated_kernel, (pltpu.SemaphoreType.REGULAR,)),
        "kernel <<def annotated_kernel>>: parameter 'sem' is annotated DmaSemaphore, but it "
        f"receives Semaphore 'sem' (from outside). {CHANGE}",
    ),
    "group against an annotation": Message(
        sp.errors.AnnotationError,
        lambda: call(group_kernel, Small),
        "kernel <<def group_kernel>>: parameter 's' is annotated Group, but it receives Small "
        f"<Small one>. {CHANGE}",
    ),
    "body against an annotation": Message(
        sp.errors.AnnotationError,
        lambda: call(scoping_kernel),
        "run_scoped <<def scoped_body>>: parameter 'sem' is annotated DmaSemaphore, but it "
        f"receives Semaphore 'sem' (allocated at <<at wrong = >>). {CHANGE}",
    ),
    "size": request(
        lambda: sp.dma_semaphore(2.0),
        f"dma_semaphore: a size must be an int, got float 2.0. {SIZES}",
    ),
    "negative size": request(
        lambda: sp.semaphore(2, -1),
        "semaphore: a size must not be negative, got -1. Sizes are counts, from 0 up. [spec]",
    ),
    "size of a buffer": request(
        lambda: sp.smem((True,), jnp.int32),
        "smem: a size must be an int, got bool True. Write the sizes one by one, as in smem(2, 3). "
        "[spec]",
    ),
    "shape of a buffer": request(
        lambda: sp.vmem(8, jnp.float32),
        "vmem: a shape must be a tuple of ints, got int 8. Write vmem((8, 128), dtype). [spec]",
    ),
    "rank": request(
        lambda: sp.barrier_semaphore(1, 1, 1, 1, 1),
        f"barrier_semaphore: {RANKS}, got 5. Fold some of them into one. [spec]",
    ),
    "rank of a raw request": request(
        lambda: call(rank_five, (pltpu.SemaphoreType.DMA((1, 2, 1, 2, 1)),)),
        f"s: {RANKS}, got a raw Pallas ref to a dma semaphore (dma_sem[1,2,1,2,1]). Fold some of "
        "them into one. [spec]",
    ),
    "spec alone": request(
        lambda: call(plain_kernel, wrong),
        f"{CONTAINER}, got <Spec semaphore() at <<at wrong = >>>. {CONTAINER_FIX}",
    ),
    "request alone": request(
        lambda: call(plain_kernel, pltpu.SemaphoreType.DMA),
        f"{CONTAINER}, got SemaphoreType <SemaphoreType.DMA: 'dma'>. {CONTAINER_FIX}",
    ),
    "scratch instance": request(
        lambda: call(plain_kernel, instance()),
        f"{CONTAINER}, got Small <Small one>. {CONTAINER_FIX}",
    ),
    "no request": request(
        lambda: call(plain_kernel, (np.float32(1),)),
        f"{REQUEST}, got float32 np.float32(1.0). {REQUEST_FIX}",
    ),
    "list in a field": request(
        lambda: field([sp.Semaphore]),
        f"Bad.field: {FIELD}, got list [<class 'safepallas._semaphores.handles.Semaphore'>]. "
        f"{FIELD_FIX}",
    ),
    "raw request in a field": request(
        lambda: field(pltpu.SemaphoreType.DMA),
        f"Bad.field: {FIELD}, got SemaphoreType <SemaphoreType.DMA: 'dma'>. {FIELD_FIX}",
    ),
    "field of a taken name": request(
        lambda: field(wrong, "_fields"),
        "Bad._fields: the name is taken, got _fields. Rename it. [spec]",
    ),
    "scratch in two places": request(
        lambda: call(plain_kernel, (wrong,), grid_spec=grid_spec(pltpu.SemaphoreType.DMA)),
        "with a grid_spec, scratch stands in scratch_shapes= of pallas_call, got some in the "
        "grid_spec. Move all of it to scratch_shapes=. [spec]",
    ),
    "adopt as no spec": row(
        sp.errors.SpecError,
        lambda x, o, s: sp.adopt(s.send.ref, sp.DmaSemaphore),
        "adopt: the second argument must be a Spec, got type <class "
        "'safepallas._semaphores.handles.DmaSemaphore'>. Pass what the ref is, such as "
        "sp.dma_semaphore(). [spec]",
    ),
    "adopt another kind": row(
        sp.errors.AdoptError,
        lambda x, o, s: sp.adopt(s.send.ref, sp.semaphore()),
        "adopt: the ref is a raw Pallas ref to a dma semaphore (dma_sem[]), not semaphore(): "
        f"semaphore[]. {ADOPT_FIX}",
    ),
    "adopt another shape": row(
        sp.errors.AdoptError,
        lambda x, o, s: sp.adopt(s.slots.ref, sp.dma_semaphore(3)),
        "adopt: the ref is a raw Pallas ref to a dma semaphore (dma_sem[2]), not dma_semaphore(3): "
        f"dma_sem[3]. {ADOPT_FIX}",
    ),
    "adopt other data": row(
        sp.errors.AdoptError,
        lambda x, o, s: sp.adopt(s.ints, sp.vmem((8, 128), jnp.int16)),
        "adopt: the ref is a raw Pallas ref (int32[8,128]), not vmem((8, 128), int16): "
        f"int16[8,128]. {ADOPT_FIX}",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)


LIMIT = (
    "kernel <<def plain_kernel>> holds 480 semaphores at once. The TPU compiler has room for 512 "
    "of 4 bytes each (2.0 KiB on v5e, v5p and v6e) and takes some of them for itself: 424 to 440 "
    "compiled. With more expect 'Ran out of memory in memory space sflag'. Let copies "
    "share semaphores. [semaphore-limit]"
)


def test_warning() -> None:
    with pytest.warns(sp.errors.SemaphoreLimitWarning) as caught:
        call(plain_kernel, (sp.dma_semaphore(480),))
    assert [str(warning.message) for warning in caught] == [filled_in(LIMIT, __file__)]
