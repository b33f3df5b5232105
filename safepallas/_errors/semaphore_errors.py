"""Errors about a semaphore itself: class, code and text in one place."""

from safepallas._errors.base import SemaphoreError


class NotASemaphoreError(SemaphoreError, TypeError):
    """Something that is no semaphore handle was passed where one is expected.

    Raw Pallas takes any ref there: an int16 buffer passes for a semaphore up to the TPU compiler.
    Pass the handle that `pallas_call`, `kernel` or `run_scoped` hands out; `adopt` a raw ref.
    """

    code = "not-a-semaphore"


def not_a_semaphore(op: str, arg: str, expected: str, got: str) -> NotASemaphoreError:
    return NotASemaphoreError(
        f"{op}: {arg} must be a {expected}, got {got}. Semaphores come from an allocator: "
        "scratch_shapes=, sp.run_scoped, or sp.adopt(ref, spec) for a raw Pallas ref."
    )


class ScopeEndedError(SemaphoreError):
    """A semaphore was used after the scope that allocated it had ended.

    A semaphore is freed at the end of its scope; raw Pallas traces what comes after, and fails when
    it runs or compiles. Use it inside the scope, or allocate it in one that encloses every use.
    """

    code = "scope-ended"


def scope_ended(op: str, sem: str, scope: str) -> ScopeEndedError:
    return ScopeEndedError(
        f"{op}: {sem} is used after its scope, {scope}, has ended. Use it inside that scope, "
        "or allocate it in the scope that uses it."
    )


class WrongKindError(SemaphoreError, TypeError):
    """A semaphore of one kind was passed to an operation of another.

    Copies add bytes to DMA semaphores; signals and waits count on regular and barrier ones. Give a
    copy `dma_semaphore()` and wait with ``copy.wait()`` or `wait_bytes`; signal a `semaphore()`.
    """

    code = "wrong-kind"


def wrong_kind(op: str, arg: str, expected: str, got: str, fix: str) -> WrongKindError:
    return WrongKindError(f"{op}: {arg} must be a {expected}, got {got}. {fix}")


class NotScalarError(SemaphoreError, TypeError):
    """A semaphore array was passed where one semaphore is expected.

    An operation takes one semaphore, and an array holds several: index it, ``sems.at[i]``.
    """

    code = "not-scalar"


def not_scalar(op: str, arg: str, expected: str, got: str, index: str) -> NotScalarError:
    return NotScalarError(
        f"{op}: {arg} must be one {expected}, got {got}. Index it first: {index}."
    )


class IndexTypeError(SemaphoreError, TypeError):
    """A semaphore array was indexed with something that is not one integer per dimension.

    Raw Pallas traces ``sems.at[0.5]`` and ``sems.at[True]``; the TPU compiler asks to file a bug.
    Give an int or a traced integer scalar for each dimension: ``sems.at[i, j]``.
    """

    code = "index-type"


def index_type(array: str, got: str) -> IndexTypeError:
    return IndexTypeError(
        f"{array}: an index must be an int or a traced integer scalar, got {got}. "
        "Use one integer for each dimension."
    )


def no_indices(array: str) -> IndexTypeError:
    return IndexTypeError(f"{array}: no index given. Use one integer for each dimension.")


class IndexRangeError(SemaphoreError, IndexError):
    """A semaphore array was indexed out of its bounds, or with too many indices.

    Raw Pallas checks no index. The TPU interpreter clamps it, so that two roles share a semaphore
    (measured). Count from 0 to n - 1, or from -1 down to -n.
    """

    code = "index-range"


def index_range(array: str, axis: int, index: int, size: int) -> IndexRangeError:
    valid = f"{-size} to {size - 1}" if size else "none: it holds no semaphore"
    return IndexRangeError(
        f"{array}: index {index} is out of bounds for dimension {axis} of size {size}. "
        f"Valid indices are {valid}."
    )


def raw_index_range(array: str, axis: int, index: int, size: int) -> IndexRangeError:
    valid = f"use 0 to {size - 1}" if size else "it holds no semaphore"
    # Below zero (JAX 0.10.2 and 0.12.0.1) InterpretParams does, and the TPU's module says -1.
    return IndexRangeError(
        f"{array}: index {index} is out of bounds for dimension {axis} of size {size}. Raw Pallas "
        f"checks no index of a semaphore, and a TPU counts none from the end: {valid}."
    )


def too_many_indices(array: str, rank: int, got: int) -> IndexRangeError:
    return IndexRangeError(
        f"{array}: {got} indices for {rank} dimension{'s' if rank > 1 else ''}. "
        "Use at most one for each dimension."
    )


class SpecError(SemaphoreError, TypeError):
    """A request to the allocator that cannot be met.

    The message says which: a size, a container, a mesh of cores, a field. Scratch is a tuple or a
    dict of `semaphore()`, `dma_semaphore()`, `vmem(...)` and the like, or a `Scratch` class.
    """

    code = "spec"


def spec(what: str, got: str, fix: str) -> SpecError:
    return SpecError(f"{what}, got {got}. {fix}")


class AdoptError(SemaphoreError, TypeError):
    """A raw ref was adopted as something it is not.

    A raw ref says its kind only while tracing, and kind, rank and shape must be those of the spec.
    Adopt it with the spec of what it is.
    """

    code = "adopt"


def adopt(expected: str, got: str) -> AdoptError:
    return AdoptError(
        f"adopt: the ref is {got}, not {expected}. Adopt it with the spec of what it is."
    )


class AnnotationError(SemaphoreError, TypeError):
    """A kernel was handed something else than its own annotation promises.

    mypy sees no further than a `functools.partial`, and untyped code not at all: here the same is
    asked while tracing. Change the annotation, or the request in the scratch.
    """

    code = "annotation"


def annotation(kernel: str, parameter: str, expected: str, got: str) -> AnnotationError:
    return AnnotationError(
        f"{kernel}: parameter {parameter!r} is annotated {expected}, but it receives {got}. "
        "Change the annotation, or the request to the allocator."
    )


def constructed(name: str, instead: str) -> TypeError:
    return TypeError(
        f"{name} cannot be constructed: probably you called {name}(...), instead you want "
        f"{instead}."
    )


def subclassed(name: str) -> TypeError:
    return TypeError(f"{name} is final: it cannot be subclassed.")


def used_as_value(handle: str, what: str) -> TypeError:
    return TypeError(
        f"{handle} {what}: a semaphore is not a value. Read its count with sp.read(sem), or wait "
        "for it with sp.wait(sem, n)."
    )
