"""The typed forms of the scopes. Between the marks: written by `_signatures_generate.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

from jax.experimental import pallas as pl
from jax.experimental.pallas import MemoryRef

from safepallas import _scopes
from safepallas._specs import Scratch, Spec

T = TypeVar("T")

# Checkers alone read the overloads; to build them would be half the time of the import.
if TYPE_CHECKING:
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
    P = TypeVar("P")
    Q = TypeVar("Q")
    R = TypeVar("R")
    U = TypeVar("U")

    Group = TypeVar("Group", bound=Scratch)

    # Names to read in the message of a checker. Nothing is one.
    class ATupleOrScratchThatFitsTheKernel: ...

    class ARequestThatFitsTheKernel: ...

    class AScratchThatFitsTheKernel: ...

    Container: TypeAlias = "tuple[Any, ...] | list[Any] | Mapping[str, Any]"
    Requests: TypeAlias = "Spec[Any] | MemoryRef | Container"

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

# generated: pallas_call
if TYPE_CHECKING:
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: ATupleOrScratchThatFitsTheKernel, grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[ARequestThatFitsTheKernel, ...] = (), grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: type[AScratchThatFitsTheKernel], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Group], None], out_shape: Any, *, scratch_shapes: type[Group], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[[Any, Any, Any, Any, Any, Any, Any, Any, A, B, C, D, E, F], None], out_shape: Any, *, scratch_shapes: tuple[Spec[A] | MemoryRef, Spec[B] | MemoryRef, Spec[C] | MemoryRef, Spec[D] | MemoryRef, Spec[E] | MemoryRef, Spec[F] | MemoryRef], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: Mapping[str, Requests] | list[Any], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[Container, *tuple[Requests, ...]], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[Spec[Any] | MemoryRef, Container, *tuple[Requests, ...]], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Container, *tuple[Requests, ...]], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Container, *tuple[Requests, ...]], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Container, *tuple[Requests, ...]], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: tuple[Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Spec[Any] | MemoryRef, Container, *tuple[Requests, ...]], grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
    @overload
    def pallas_call(kernel: Callable[..., None], out_shape: Any, *, scratch_shapes: ATupleOrScratchThatFitsTheKernel, grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, metadata: dict[str, str] | None = None) -> Callable[..., Any]: ...
# end of pallas_call
# fmt: on
def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    scratch_shapes: Any = (),
    grid_spec: Any = None,
    grid: Any = (),
    in_specs: Any = pl.no_block_spec,
    out_specs: Any = pl.no_block_spec,
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
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
            8 refs and 6 specs; a list hides its elements from them. It goes here also beside a
            `grid_spec` (``pltpu.PrefetchScalarGridSpec``).
        grid_spec, grid, in_specs, out_specs, input_output_aliases, debug, interpret, name,
        compiler_params, cost_estimate, metadata: passed on as they are; see ``pl.pallas_call``.

    Returns:
        What ``pl.pallas_call`` returns: call it with the inputs.

    Raises:
        SpecError: for a scratch that is none of these.
        AnnotationError: while tracing, where an annotation promises something else.
        MissingCollectiveIdError, UnusedCollectiveIdError, InterpretedReadError: see there.

    Warns:
        SemaphoreLimitWarning: from 480 semaphores on (512 on v5e, v5p and v6e, some taken).

    Example::

        class Buffers(sp.Scratch):
            sem = sp.dma_semaphore()

        def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
            sp.async_copy(x, o, s.sem).wait()

        sp.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_shapes=Buffers)(x)
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
# end of run_scoped
# fmt: on
def run_scoped(body: Callable[..., T], /, *specs: Any, collective_axes: Any = ()) -> T:
    """``pl.run_scoped``, whose body receives handles for semaphores.

    Args:
        body: takes what the specs yield, in order; or one `Scratch`.
        specs: the requests, up to 6; or one `Scratch` class.
        collective_axes: as in Pallas.

    Returns:
        What `body` returns. A handle must not leave it: used later, it raises `ScopeEndedError`.

    Raises:
        SpecError: for a spec that is none.
        AnnotationError: where an annotation of `body` promises something else.

    Example::

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
# end of with_scoped
# fmt: on
def with_scoped(*specs: Any, collective_axes: Any = ()) -> Any:
    """``pl.with_scoped``: a decorator that calls a function with allocations of its own.

    Args:
        specs: the requests, up to 6; or one `Scratch` class.
        collective_axes: as in Pallas.

    Returns:
        A decorator. The decorated function takes the arguments before those of the specs.

    Raises:
        SemaphoreError: as `run_scoped`, when the decorated function is called.

    Example::

        @sp.with_scoped(sp.dma_semaphore())
        def copy(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
            sp.async_copy(src, dst, sem).wait()

        copy(x, o)
    """
    return _scopes.with_scoped(*specs, collective_axes=collective_axes)
