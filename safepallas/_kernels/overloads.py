"""The typed forms of the scopes and calls.

Between the marks: written by ``python -m tests.generate.overloads``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jax.experimental import pallas as pl

from safepallas._kernels import async_call, core_kernels
from safepallas._kernels import scopes as _scopes

T = TypeVar("T")

# Checkers alone read the overloads; to build them would take half the time of the import.
if TYPE_CHECKING:
    from typing import Generic, Protocol, TypeAlias, Unpack, overload

    from jax.experimental.pallas import MemoryRef
    from typing_extensions import TypedDict

    from safepallas._kernels.async_call import AsyncCall
    from safepallas._semaphores.meshes import CoreMesh
    from safepallas._semaphores.scratch import Scratch
    from safepallas._semaphores.specs import Spec

    A = TypeVar("A")
    B = TypeVar("B")
    C = TypeVar("C")
    D = TypeVar("D")
    E = TypeVar("E")
    F = TypeVar("F")
    A_co = TypeVar("A_co", covariant=True)
    B_co = TypeVar("B_co", covariant=True)
    C_co = TypeVar("C_co", covariant=True)
    D_co = TypeVar("D_co", covariant=True)
    E_co = TypeVar("E_co", covariant=True)
    F_co = TypeVar("F_co", covariant=True)
    A_contra = TypeVar("A_contra", contravariant=True)
    P = TypeVar("P")
    Q = TypeVar("Q")
    R = TypeVar("R")
    U = TypeVar("U")

    Group = TypeVar("Group", bound=Scratch)

    class FitsTheKernelWhereTheRestIsRight:
        """A name to read in a checker's message; nothing is one."""

    class AScratchThatFitsBothKernels(Scratch):
        """As above."""

    Request: TypeAlias = Spec[Any] | MemoryRef
    Container: TypeAlias = tuple[Any, ...] | list[Any] | Mapping[str, Any]
    Requests: TypeAlias = Request | Container
    # What is left of it, whose parts are checked while tracing only: none, a dict, a list, a tuple
    # that holds a container among its first requests, or more requests than the table has. pyright
    # reports this of scratch that fits nothing, by the name of the alias.
    ScratchThatFitsTheKernel: TypeAlias = (
        Mapping[str, Requests]
        | list[Any]
        | tuple[()]
        | tuple[Container, *tuple[Requests, ...]]
        | tuple[Request, Container, *tuple[Requests, ...]]
        | tuple[Request, Request, Container, *tuple[Requests, ...]]
        | tuple[Request, Request, Request, Container, *tuple[Requests, ...]]
        | tuple[Request, Request, Request, Request, Container, *tuple[Requests, ...]]
        | tuple[Request, Request, Request, Request, Request, Container, *tuple[Requests, ...]]
        | tuple[
            Request, Request, Request, Request, Request, Request, Requests, *tuple[Requests, ...]
        ]
    )
    Asked = TypeVar("Asked", bound=type[Scratch] | tuple[Requests, ...] | ScratchThatFitsTheKernel)
    Asked_co = TypeVar(
        "Asked_co",
        bound=type[Scratch] | tuple[Requests, ...] | ScratchThatFitsTheKernel,
        covariant=True,
    )

    # Closed (PEP 728): to ty, any other TypedDict lets unknown keywords through.
    class PallasCallOptions(TypedDict, total=False, closed=True):
        """Of ``pl.pallas_call``, besides what has a type of its own here."""

        grid_spec: Any
        grid: Any
        in_specs: Any
        out_specs: Any
        input_output_aliases: Mapping[int, int]
        debug: bool
        interpret: Any
        name: str | None
        compiler_params: Any
        cost_estimate: Any
        metadata: dict[str, str] | None

    class KernelOptions(TypedDict, total=False, closed=True):
        """Of ``pl.kernel``, besides what has a type of its own here."""

        compiler_params: Any
        interpret: Any
        cost_estimate: Any
        debug: bool
        name: str | None
        metadata: dict[str, str] | None


# fmt: off

# generated: protocols
if TYPE_CHECKING:
    class WithScoped1(Protocol[A_co]):
        @overload
        def __call__(self, fn: Callable[[A_co], T], /) -> Callable[[], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, A_co], T], /) -> Callable[[P], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, A_co], T], /) -> Callable[[P, Q], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, A_co], T], /) -> Callable[[P, Q, R], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, U, A_co], T], /) -> Callable[[P, Q, R, U], T]: ...
    class WithScoped2(Protocol[A_co, B_co]):
        @overload
        def __call__(self, fn: Callable[[A_co, B_co], T], /) -> Callable[[], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, A_co, B_co], T], /) -> Callable[[P], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, A_co, B_co], T], /) -> Callable[[P, Q], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, A_co, B_co], T], /) -> Callable[[P, Q, R], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, U, A_co, B_co], T], /) -> Callable[[P, Q, R, U], T]: ...
    class WithScoped3(Protocol[A_co, B_co, C_co]):
        @overload
        def __call__(self, fn: Callable[[A_co, B_co, C_co], T], /) -> Callable[[], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, A_co, B_co, C_co], T], /) -> Callable[[P], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, A_co, B_co, C_co], T], /) -> Callable[[P, Q], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, A_co, B_co, C_co], T], /) -> Callable[[P, Q, R], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, U, A_co, B_co, C_co], T], /) -> Callable[[P, Q, R, U], T]: ...
    class WithScoped4(Protocol[A_co, B_co, C_co, D_co]):
        @overload
        def __call__(self, fn: Callable[[A_co, B_co, C_co, D_co], T], /) -> Callable[[], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, A_co, B_co, C_co, D_co], T], /) -> Callable[[P], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, A_co, B_co, C_co, D_co], T], /) -> Callable[[P, Q], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, A_co, B_co, C_co, D_co], T], /) -> Callable[[P, Q, R], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, U, A_co, B_co, C_co, D_co], T], /) -> Callable[[P, Q, R, U], T]: ...
    class WithScoped5(Protocol[A_co, B_co, C_co, D_co, E_co]):
        @overload
        def __call__(self, fn: Callable[[A_co, B_co, C_co, D_co, E_co], T], /) -> Callable[[], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, A_co, B_co, C_co, D_co, E_co], T], /) -> Callable[[P], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, A_co, B_co, C_co, D_co, E_co], T], /) -> Callable[[P, Q], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, A_co, B_co, C_co, D_co, E_co], T], /) -> Callable[[P, Q, R], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, U, A_co, B_co, C_co, D_co, E_co], T], /) -> Callable[[P, Q, R, U], T]: ...
    class WithScoped6(Protocol[A_co, B_co, C_co, D_co, E_co, F_co]):
        @overload
        def __call__(self, fn: Callable[[A_co, B_co, C_co, D_co, E_co, F_co], T], /) -> Callable[[], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, A_co, B_co, C_co, D_co, E_co, F_co], T], /) -> Callable[[P], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, A_co, B_co, C_co, D_co, E_co, F_co], T], /) -> Callable[[P, Q], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, A_co, B_co, C_co, D_co, E_co, F_co], T], /) -> Callable[[P, Q, R], T]: ...
        @overload
        def __call__(self, fn: Callable[[P, Q, R, U, A_co, B_co, C_co, D_co, E_co, F_co], T], /) -> Callable[[P, Q, R, U], T]: ...
# end of protocols

# generated: kernels
if TYPE_CHECKING:
    class KernelOf1(Protocol[A_contra]):
        def __call__(self, r1: Any, last: A_contra, /) -> None: ...
    class KernelOf3(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, last: A_contra, /) -> None: ...
    class KernelOf4(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, last: A_contra, /) -> None: ...
    class KernelOf5(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, last: A_contra, /) -> None: ...
    class KernelOf6(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, last: A_contra, /) -> None: ...
    class KernelOf7(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, last: A_contra, /) -> None: ...
    class KernelOf8(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, last: A_contra, /) -> None: ...
    class KernelOf9(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, last: A_contra, /) -> None: ...
    class KernelOf10(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, r10: Any, last: A_contra, /) -> None: ...
    class KernelOf11(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, r10: Any, r11: Any, last: A_contra, /) -> None: ...
    class KernelOf12(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, r10: Any, r11: Any, r12: Any, last: A_contra, /) -> None: ...
    class KernelOf13(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, r10: Any, r11: Any, r12: Any, r13: Any, last: A_contra, /) -> None: ...
    class KernelOf14(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, r10: Any, r11: Any, r12: Any, r13: Any, r14: Any, last: A_contra, /) -> None: ...
    class KernelOf15(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, r10: Any, r11: Any, r12: Any, r13: Any, r14: Any, r15: Any, last: A_contra, /) -> None: ...
    class KernelOf16(Protocol[A_contra]):
        def __call__(self, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any, r6: Any, r7: Any, r8: Any, r9: Any, r10: Any, r11: Any, r12: Any, r13: Any, r14: Any, r15: Any, r16: Any, last: A_contra, /) -> None: ...
    InOutKernel: TypeAlias = Callable[[Any, Any, A], None] | KernelOf1[A] | KernelOf3[A] | KernelOf4[A] | KernelOf5[A] | KernelOf6[A] | KernelOf7[A] | KernelOf8[A] | KernelOf9[A] | KernelOf10[A] | KernelOf11[A] | KernelOf12[A] | KernelOf13[A] | KernelOf14[A] | KernelOf15[A] | KernelOf16[A]
    OtherKernel: TypeAlias = Callable[[Any, A], None] | Callable[[Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None]
    Kernel1: TypeAlias = Callable[[Any, A], None] | Callable[[Any, Any, A], None] | Callable[[Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A], None]
    Kernel2: TypeAlias = Callable[[Any, A, B], None] | Callable[[Any, Any, A, B], None] | Callable[[Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B], None]
    Kernel3: TypeAlias = Callable[[Any, A, B, C], None] | Callable[[Any, Any, A, B, C], None] | Callable[[Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None]
    Kernel4: TypeAlias = Callable[[Any, A, B, C, D], None] | Callable[[Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None]
    Kernel5: TypeAlias = Callable[[Any, A, B, C, D, E], None] | Callable[[Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None]
    Kernel6: TypeAlias = Callable[[Any, A, B, C, D, E, F], None] | Callable[[Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None] | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None]
# end of kernels

# generated: kernel_decorator
if TYPE_CHECKING:
    class KernelDecorator(Generic[Asked_co]):
        @overload
        def __call__(self: KernelDecorator[type[Group]], body: Callable[[Group], None] | Kernel1[Group], /) -> Callable[..., Any]: ...
        @overload
        def __call__(self: KernelDecorator[tuple[Spec[A] | MemoryRef]], body: Callable[[A], None] | Kernel1[A], /) -> Callable[..., Any]: ...
        @overload
        def __call__(self: KernelDecorator[tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef]], body: Callable[[A, B], None] | Kernel2[A, B], /) -> Callable[..., Any]: ...
        @overload
        def __call__(self: KernelDecorator[tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef]], body: Callable[[A, B, C], None] | Kernel3[A, B, C], /) -> Callable[..., Any]: ...
        @overload
        def __call__(self: KernelDecorator[tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef]], body: Callable[[A, B, C, D], None] | Kernel4[A, B, C, D], /) -> Callable[..., Any]: ...
        @overload
        def __call__(self: KernelDecorator[tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef]], body: Callable[[A, B, C, D, E], None] | Kernel5[A, B, C, D, E], /) -> Callable[..., Any]: ...
        @overload
        def __call__(self: KernelDecorator[tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef]], body: Callable[[A, B, C, D, E, F], None] | Kernel6[A, B, C, D, E, F], /) -> Callable[..., Any]: ...
        @overload
        def __call__(self: KernelDecorator[ScratchThatFitsTheKernel], body: Callable[..., None], /) -> Callable[..., Any]: ...
        def __call__(self, body: Any, /) -> Any: ...
# end of kernel_decorator

# generated: pallas_call
if TYPE_CHECKING:
    @overload
    def pallas_call(kernel: InOutKernel[Group], out_shape: Any, *, scratch_shapes: type[Group], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: OtherKernel[Group], out_shape: Any, *, scratch_shapes: type[Group], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[FitsTheKernelWhereTheRestIsRight, ...], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: InOutKernel[A], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: OtherKernel[A], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Kernel2[A, B], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Kernel3[A, B, C], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Kernel4[A, B, C, D], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Kernel5[A, B, C, D, E], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Kernel6[A, B, C, D, E, F], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: ScratchThatFitsTheKernel = (), **options: Unpack[PallasCallOptions]) -> Callable[..., Any]: ...
# end of pallas_call
# ty shows these lines with each call that fits no overload.
def pallas_call(
    kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: Any = (), grid_spec: Any = None,
    grid: Any = (), in_specs: Any = pl.no_block_spec, out_specs: Any = pl.no_block_spec,
    input_output_aliases: Mapping[int, int] | None = None, debug: bool = False,
    interpret: Any = False, name: str | None = None, compiler_params: Any = None,
    cost_estimate: Any = None, metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    # fmt: on
    """``pl.pallas_call``, whose kernel receives handles for semaphores.

    Whatever semaphore ref reaches the kernel arrives as a handle or an array: scratch, inputs in
    semaphore memory, outputs. Everything else arrives as the raw ref. While tracing, what arrives
    is checked against the kernel's annotations. The call that is traced is the one raw Pallas
    would have traced: same jaxpr, same TPU module.

    Args:
        kernel: takes a ref for each input and output, then the scratch. May be a partial.
        out_shape: as in Pallas; may hold specs, for semaphores that leave the kernel.
        scratch_shapes: a `Scratch` class (the kernel's last parameter is an instance of it), a
            tuple of specs (a parameter each, in order), or a dict of specs (keyword parameters).
            Elements may be tuples and dicts of specs. Type checkers follow the first two, up to
            16 refs and 6 specs; a list hides its elements from them. It goes here also beside a
            `grid_spec` (``pltpu.PrefetchScalarGridSpec``).
        grid_spec, grid, in_specs, out_specs, input_output_aliases: as in ``pl.pallas_call``.
        compiler_params, interpret, debug, name, cost_estimate, metadata: as in ``pl.pallas_call``.

    Returns:
        What ``pl.pallas_call`` returns, which is called with the inputs.

    Raises:
        SpecError: for a scratch that is none of these.
        AnnotationError: while tracing, where an annotation promises something else.
        MissingCollectiveIdError, UnusedCollectiveIdError, MixedBarriersError: see there.
        InterpretedReadError, InterpretedCopyError, InterpretedOutputError: see there.
        MissingSideEffectsError: where a semaphore enters or leaves, and XLA may drop the kernel.

    Warns:
        SemaphoreLimitWarning: from 480 semaphores on (512 on v5e, v5p and v6e, some taken).

    Example::

        class Buffers(sp.Scratch):
            sem = sp.dma_semaphore()

        def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
            sp.async_copy(x, o, s.sem).wait()

        sp.pallas_call(kernel, like, scratch_shapes=Buffers)(x)
    """
    return _scopes.pallas_call(
        kernel,
        out_shape,
        scratch_shapes=scratch_shapes,
        grid_spec=grid_spec,
        grid=grid,
        in_specs=in_specs,
        out_specs=out_specs,
        input_output_aliases=input_output_aliases or {},
        debug=debug,
        interpret=interpret,
        name=name,
        compiler_params=compiler_params,
        cost_estimate=cost_estimate,
        metadata=metadata,
    )


# fmt: off
# generated: kernel
if TYPE_CHECKING:
    @overload
    def kernel(body: Callable[[Group], None] | Kernel1[Group], out_type: Any = (), *, scratch_types: type[Group], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[..., None], out_type: Any = (), *, scratch_types: tuple[FitsTheKernelWhereTheRestIsRight, ...], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[[A], None] | Kernel1[A], out_type: Any = (), *, scratch_types: tuple[Spec[A] | MemoryRef], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[[A, B], None] | Kernel2[A, B], out_type: Any = (), *, scratch_types: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[[A, B, C], None] | Kernel3[A, B, C], out_type: Any = (), *, scratch_types: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[[A, B, C, D], None] | Kernel4[A, B, C, D], out_type: Any = (), *, scratch_types: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[[A, B, C, D, E], None] | Kernel5[A, B, C, D, E], out_type: Any = (), *, scratch_types: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[[A, B, C, D, E, F], None] | Kernel6[A, B, C, D, E, F], out_type: Any = (), *, scratch_types: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Callable[..., None], out_type: Any = (), *, scratch_types: ScratchThatFitsTheKernel = (), mesh: CoreMesh, **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Sequence[Callable[[Group], None] | Kernel1[Group]], out_type: Any = (), *, scratch_types: type[Group], mesh: Sequence[CoreMesh], **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(body: Sequence[Callable[..., None]], out_type: Any = (), *, scratch_types: Container = (), mesh: Sequence[CoreMesh], **options: Unpack[KernelOptions]) -> Callable[..., Any]: ...
    @overload
    def kernel(*, out_type: Any = (), scratch_types: Asked = ..., mesh: CoreMesh, **options: Unpack[KernelOptions]) -> KernelDecorator[Asked]: ...  # pyright: ignore[reportInvalidTypeVarUse]
# end of kernel
def kernel(
    body: Any = None, out_type: Any = (), *, mesh: Any, scratch_types: Any = (),
    compiler_params: Any = None, interpret: Any = False, cost_estimate: Any = None,
    debug: bool = False, name: str | None = None, metadata: dict[str, str] | None = None,
) -> Any:
    # fmt: on
    """``pl.kernel``: a kernel on a mesh of cores, which receives handles for semaphores.

    The body runs once on each core of the mesh. It receives a ref for each input and output, then
    what the scratch yields; a dict of scratch by keyword; a `Scratch` as one object. A semaphore of
    another kernel among the inputs arrives as a handle too.

    Args:
        body: the kernel. Left out: a decorator for one is returned. A sequence of them, with as
            many meshes, runs all at once (MPMD): each receives all refs and all scratch, of which
            each request names its cores (``sp.semaphore() @ mesh``). A core waits for semaphores
            of its own, and may signal those of others.
        out_type: a `jax.ShapeDtypeStruct`, or a tree of them; specs of semaphores too.
        mesh: ``pltpu.TensorCoreMesh`` (JAX 0.10.2: ``pltpu.create_tensorcore_mesh``),
            ``plsc.VectorSubcoreMesh`` or ``plsc.ScalarSubcoreMesh``, from
            ``jax.experimental.pallas.tpu_sc``; or a sequence of them.
        scratch_types: a tuple of specs, a `Scratch` class, or a dict or list of specs (typed as
            ``Any`` in the kernel); raw Pallas requests may stand among them. A vector subcore has
            room for some 24 semaphores (measured for v5p and v6e).
        compiler_params, interpret, cost_estimate, debug, name, metadata: as in ``pl.kernel``.

    Returns:
        A function from the inputs to the outputs; or the decorator.

    Raises:
        SpecError: for scratch or a mesh that is none, or that JAX cannot run.
        AnnotationError: where an annotation of the kernel promises something else.
        ForeignSemaphoreError: where one of several bodies waits for a semaphore of other cores.
        SemaphoreError: as `pallas_call`.

    Example::

        @sp.kernel(out_type=like, mesh=mesh, scratch_types=(sp.dma_semaphore(),))
        def copy(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
            sp.async_copy(x, o, sem).wait()

        copy(x)
    """
    return core_kernels.kernel(
        body,
        out_type,
        mesh=mesh,
        scratch_types=scratch_types,
        compiler_params=compiler_params,
        interpret=interpret,
        cost_estimate=cost_estimate,
        debug=debug,
        name=name,
        metadata=metadata,
    )


# fmt: off
# generated: pallas_call_async
if TYPE_CHECKING:
    @overload
    def pallas_call_async(semaphores: type[Group], start: InOutKernel[Group], done: InOutKernel[Group], out_shape: Any, *, compiler_params: Any = None, interpret: Any = False) -> AsyncCall[Group]: ...
    @overload
    def pallas_call_async(semaphores: type[Group], start: OtherKernel[Group], done: OtherKernel[Group], out_shape: Any, *, compiler_params: Any = None, interpret: Any = False) -> AsyncCall[Group]: ...
    @overload
    def pallas_call_async(semaphores: type[AScratchThatFitsBothKernels], start: Callable[..., None], done: Callable[..., None], out_shape: Any, *, compiler_params: Any = None, interpret: Any = False) -> AsyncCall[AScratchThatFitsBothKernels]: ...
# end of pallas_call_async
# fmt: on
def pallas_call_async(
    semaphores: Any,
    start: Callable[..., None],
    done: Callable[..., None],
    out_shape: Any,
    *,
    compiler_params: Any = None,
    interpret: Any = False,
) -> Any:
    """A start and a done kernel: what one starts goes on while other work is done.

    Both receive the same: a ref for each input, one for each output, all in HBM, and the
    semaphores. `start` begins copies and returns; `done` waits for them. Each is a
    ``pl.pallas_call`` of its own with ``has_side_effects`` set, and the semaphores go from one to
    the other. Inputs and outputs are kept in place between the two: else XLA moves buffers to
    other memory while a copy is in flight, and the copy goes astray (seen with libtpu under JAX
    0.10.2 and 0.12.0.1, v5e and v6e).

    Args:
        semaphores: a `Scratch` class of semaphores, no barriers and no data: 4 bytes each.
        start: the kernel that starts.
        done: the kernel that waits for all that `start` has started.
        out_shape: a `jax.ShapeDtypeStruct`, or a tree of them.
        compiler_params: of both kernels; a ``collective_id`` is for `start` alone.
        interpret: as in ``pl.pallas_call``. No interpreter of JAX carries a semaphore out of a
            kernel: the two run as one kernel, when done is called.

    Returns:
        An `AsyncCall`. Call its `start` and its `done` inside one `jax.jit`.

    Raises:
        SpecError: for semaphores or outputs that are none of these.

    Example::

        class Flight(sp.Scratch):
            sem = sp.dma_semaphore()

        def start(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
            sp.async_copy(x, o, flight.sem)

        def done(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
            sp.wait_bytes(flight.sem, o)

        call: sp.AsyncCall[Flight] = sp.pallas_call_async(Flight, start, done, like)

        @jax.jit
        def copy_and_compute(x: jax.Array) -> tuple[jax.Array, jax.Array]:
            in_flight: sp.InFlight[Flight] = call.start(x)
            y = jnp.tanh(in_flight.then(x))  # while the copy is in flight
            return call.done(in_flight, after=y), y

        copy_and_compute(x)
    """
    return async_call.make_call(
        semaphores,
        start,
        done,
        out_shape,
        compiler_params=compiler_params,
        interpret=interpret,
    )


# fmt: off
# generated: run_scoped
if TYPE_CHECKING:
    @overload
    def run_scoped(body: Callable[[Group], T], spec: type[Group], /, *, collective_axes: Any = ()) -> T: ...
    @overload
    def run_scoped(body: Callable[[A], T], a: Spec[A] | MemoryRef, /, *, collective_axes: Any = ()) -> T: ...
    @overload
    def run_scoped(body: Callable[[A, B], T], a: Spec[A] | MemoryRef, b: Spec[B] | MemoryRef, /, *, collective_axes: Any = ()) -> T: ...
    @overload
    def run_scoped(body: Callable[[A, B, C], T], a: Spec[A] | MemoryRef, b: Spec[B] | MemoryRef, c: Spec[C] | MemoryRef, /, *, collective_axes: Any = ()) -> T: ...
    @overload
    def run_scoped(body: Callable[[A, B, C, D], T], a: Spec[A] | MemoryRef, b: Spec[B] | MemoryRef, c: Spec[C] | MemoryRef, d: Spec[D] | MemoryRef, /, *, collective_axes: Any = ()) -> T: ...
    @overload
    def run_scoped(body: Callable[[A, B, C, D, E], T], a: Spec[A] | MemoryRef, b: Spec[B] | MemoryRef, c: Spec[C] | MemoryRef, d: Spec[D] | MemoryRef, e: Spec[E] | MemoryRef, /, *, collective_axes: Any = ()) -> T: ...
    @overload
    def run_scoped(body: Callable[[A, B, C, D, E, F], T], a: Spec[A] | MemoryRef, b: Spec[B] | MemoryRef, c: Spec[C] | MemoryRef, d: Spec[D] | MemoryRef, e: Spec[E] | MemoryRef, f: Spec[F] | MemoryRef, /, *, collective_axes: Any = ()) -> T: ...
    @overload
    def run_scoped(body: Callable[..., T], a: Request, b: Request, c: Request, d: Request, e: Request, f: Request, g: Request, /, *more: Request, collective_axes: Any = ()) -> T: ...
# end of run_scoped
# fmt: on
def run_scoped(body: Callable[..., T], /, *specs: Any, collective_axes: Any = ()) -> T:
    """``pl.run_scoped``, whose body receives handles for semaphores.

    Args:
        body: takes what the specs yield, in order; or one `Scratch`.
        specs: the requests, or one `Scratch` class. Type checkers match up to 6 with parameters.
        collective_axes: as in Pallas.

    Returns:
        What `body` returns. A handle must not leave it, as it raises `ScopeEndedError` later.

    Raises:
        SpecError: for a spec that is none.
        AnnotationError: where an annotation of `body` promises something else.

    Example, in a kernel::

        def body(buffer: sp.Ref, sem: sp.DmaSemaphore) -> None:
            sp.async_copy(x, buffer, sem).wait()

        sp.run_scoped(body, sp.vmem((8, 128), jnp.float32), sp.dma_semaphore())
    """
    return _scopes.run_scoped(body, *specs, collective_axes=collective_axes)  # type: ignore[no-any-return]


# fmt: off
# generated: with_scoped
if TYPE_CHECKING:
    @overload
    def with_scoped(spec: type[Group], /, *, collective_axes: Any = ()) -> WithScoped1[Group]: ...
    @overload
    def with_scoped(a: Spec[A], /, *, collective_axes: Any = ()) -> WithScoped1[A]: ...
    @overload
    def with_scoped(a: Spec[A], b: Spec[B], /, *, collective_axes: Any = ()) -> WithScoped2[A, B]: ...
    @overload
    def with_scoped(a: Spec[A], b: Spec[B], c: Spec[C], /, *, collective_axes: Any = ()) -> WithScoped3[A, B, C]: ...
    @overload
    def with_scoped(a: Spec[A], b: Spec[B], c: Spec[C], d: Spec[D], /, *, collective_axes: Any = ()) -> WithScoped4[A, B, C, D]: ...
    @overload
    def with_scoped(a: Spec[A], b: Spec[B], c: Spec[C], d: Spec[D], e: Spec[E], /, *, collective_axes: Any = ()) -> WithScoped5[A, B, C, D, E]: ...
    @overload
    def with_scoped(a: Spec[A], b: Spec[B], c: Spec[C], d: Spec[D], e: Spec[E], f: Spec[F], /, *, collective_axes: Any = ()) -> WithScoped6[A, B, C, D, E, F]: ...
    @overload
    def with_scoped(a: Request, b: Request, c: Request, d: Request, e: Request, f: Request, g: Request, /, *more: Request, collective_axes: Any = ()) -> Callable[[Callable[..., T]], Callable[..., T]]: ...
# end of with_scoped
# fmt: on
def with_scoped(*specs: Any, collective_axes: Any = ()) -> Any:
    """``pl.with_scoped``: a decorator that calls a function with allocations of its own.

    Args:
        specs: the requests, or one `Scratch` class. Type checkers match up to 6 with parameters.
        collective_axes: as in Pallas.

    Returns:
        A decorator. The decorated function takes the arguments before those of the specs.

    Raises:
        SemaphoreError: as `run_scoped`, when the decorated function is called.

    Example, in a kernel::

        @sp.with_scoped(sp.dma_semaphore())
        def copy(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
            sp.async_copy(src, dst, sem).wait()

        copy(x, o)
    """
    return _scopes.with_scoped(*specs, collective_axes=collective_axes)
