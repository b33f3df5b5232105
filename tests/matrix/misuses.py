"""The misuse classes, each as a small program for safepallas and the same program in raw Pallas.

A misuse is the body of a kernel, as text, so that checkers look at what is run. The raw text is the
same with the names of Pallas. What a body names of the scratch below, the kernel gets.
"""

import re
from typing import NamedTuple

# Name in a kernel: its type for safepallas, its request, its request in raw Pallas.
SCRATCH = {
    "regular": ("sp.Semaphore", "sp.semaphore()", "pltpu.SemaphoreType.REGULAR"),
    "barrier": ("sp.BarrierSemaphore", "sp.barrier_semaphore()", "pltpu.SemaphoreType.BARRIER"),
    "dma": ("sp.DmaSemaphore", "sp.dma_semaphore()", "pltpu.SemaphoreType.DMA"),
    "send": ("sp.DmaSemaphore", "sp.dma_semaphore()", "pltpu.SemaphoreType.DMA"),
    "sems": (
        "sp.SemaphoreArray[sp.Semaphore, tuple[int]]",
        "sp.semaphore(2)",
        "pltpu.SemaphoreType.REGULAR((2,))",
    ),
    "dmas": (
        "sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]",
        "sp.dma_semaphore(2)",
        "pltpu.SemaphoreType.DMA((2,))",
    ),
    "many": (
        "sp.SemaphoreArray[sp.Semaphore, tuple[int]]",
        "sp.semaphore(600)",
        "pltpu.SemaphoreType.REGULAR((600,))",
    ),
    "mistaken": ("sp.DmaSemaphore", "sp.semaphore()", "pltpu.SemaphoreType.REGULAR"),
    "short": ("sp.Ref", "sp.smem((), jnp.int16)", "pltpu.SMEM((), jnp.int16)"),
    "single": ("sp.Ref", "sp.smem((), jnp.float32)", "pltpu.SMEM((), jnp.float32)"),
    "ints": ("sp.Ref", "sp.vmem((8, 128), jnp.int32)", "pltpu.VMEM((8, 128), jnp.int32)"),
}

PALLAS = {
    r"sp\.(signal|wait|read)\(": r"pl.semaphore_\1(",
    r"sp\.wait_bytes\((\w+), (\w+)\)": r"pltpu.make_async_copy(\2, \2, \1).wait()",
    r"sp\.(make_async_copy|make_async_remote_copy|get_barrier_semaphore)": r"pltpu.\1",
    r"sp\.run_scoped": "pl.run_scoped",
    r"sp\.adopt\((\w+)\.ref, sp\.\w+\(\)\)": r"\1",
    r"sp\.(Semaphore|DmaSemaphore|LocalCopy)\b(?!\()": "Any",
    r"sp\.semaphore\(\)": "pltpu.SemaphoreType.REGULAR",
    r"sp\.dma_semaphore\(\)": "pltpu.SemaphoreType.DMA",
}

HEAD = """\
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
{library}
LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def kernel({parameters}) -> None:
{body}


def call(interpret: Any) -> Any:
    return {pallas_call}(
        kernel,
        LIKE,
        scratch_shapes=({scratch}),{boundary}
        compiler_params=pltpu.CompilerParams({params}),
        interpret={interpret},
    )
"""


class Misuse(NamedTuple):
    """A class of misuse.

    Attributes:
        group: its table on the page.
        title: what is done.
        body: the kernel's, for safepallas; the misuse is its only line, or those that end in
            MISUSE.
        axes: of the mesh that it runs on, two devices each; "" is none.
        raw: the kernel's in raw Pallas, where it is not the same text with other names.
        params: of ``pltpu.CompilerParams``.
        limit: why types cannot express it, or "".
        copies: whether the kernel is meant to copy its input to its output.
        note: what is not seen from the cells.
        interpret: what the call for safepallas names, where that is part of the misuse.
    """

    group: str
    title: str
    body: str
    axes: str = ""
    raw: str = ""
    params: str = ""
    limit: str = ""
    copies: bool = False
    note: str = ""
    interpret: str = "interpret"

    @property
    def name(self) -> str:
        return re.sub(r"\W+", "_", self.title).strip("_").lower()

    def like(self) -> str:
        """The correct program that a stage must be able to run, to judge this one."""
        if "make_async_remote_copy" in self.body:
            return "remote_copy"
        if "get_barrier_semaphore" in self.body:
            return "barrier_semaphore"
        return "signal_of_another_device" if "device_id" in self.body else "signal_and_wait"

    def line(self) -> str:
        """The line to show."""
        lines = self.body.splitlines()
        marked = [line for line in lines if line.endswith(MISUSE)]
        marked = marked or [line for line in lines if line.startswith("sp.")] or lines
        return marked[0].removesuffix(MISUSE).strip()

    def text(self, raw: bool) -> str:
        """The program."""
        body = self.body
        if raw:
            body = self.raw or body
            for ours, pallas in PALLAS.items():
                body = re.sub(ours, pallas, body)
        lines = body.splitlines()
        if not any(line.endswith(MISUSE) for line in lines) and self.group != "Correct programs":
            lines[0] += MISUSE
        used = [name for name in SCRATCH if re.search(rf"\b{name}\b", body)]
        ref = "Any" if raw else "sp.Ref"
        typed = {n: "Any" if raw else SCRATCH[n][0] for n in used}
        mistaken = "mistaken" in used and not raw
        return HEAD.format(
            library="" if raw else "\nimport safepallas as sp\n",
            parameters=", ".join(
                [f"x: {ref}", f"o: {ref}", *(f"{n}: {t}" for n, t in typed.items())]
            ),
            body="\n".join("    " + line for line in lines),
            pallas_call="pl.pallas_call" if raw else "sp.pallas_call",
            scratch="".join(SCRATCH[n][2 if raw else 1] + ", " for n in used).rstrip(),
            boundary=MISUSE if mistaken else "",
            params=self.params,
            interpret="interpret" if raw else self.interpret,
        )


MISUSE = "  # misuse"
COPY = "copy.start()\ncopy.wait()"


def local(arguments: str) -> str:
    return f"copy = sp.make_async_copy({arguments}){MISUSE}\n{COPY}"


def remote(arguments: str) -> str:
    return f"copy = sp.make_async_remote_copy({arguments}){MISUSE}\n{COPY}"


VALUE = "its value is not in the types"
BOOL = "a bool is an int"
MESH = "the mesh is not in the types"
CALL = "the kernel and its call are checked apart"

# Accepted at every stage: what surrounds a misuse is not what is refused.
CORRECT = [
    Misuse("Correct programs", "signal and wait", "sp.signal(sems.at[1])\nsp.wait(sems.at[1])"),
    Misuse("Correct programs", "copy", local("x, o, dma").replace(MISUSE, ""), copies=True),
    Misuse(
        "Correct programs",
        "remote copy",
        remote('x, o, send, dma, {"x": 1 - jax.lax.axis_index("x")}').replace(MISUSE, ""),
        axes="x",
        copies=True,
    ),
    Misuse(
        "Correct programs",
        "signal of another device",
        'there = jax.lax.axis_index("x"), 1 - jax.lax.axis_index("y")\n'
        "sp.signal(regular, device_id=there)\nsp.wait(regular)",
        axes="xy",
    ),
    Misuse(
        "Correct programs",
        "barrier semaphore",
        "common = sp.get_barrier_semaphore()\n"
        'sp.signal(common, device_id={"x": 1 - jax.lax.axis_index("x")})\nsp.wait(common)',
        axes="x",
        params="collective_id=0",
    ),
]

MISUSES = [
    Misuse("Kinds", "signal of a DMA semaphore", "sp.signal(dma)"),
    Misuse("Kinds", "wait for a DMA semaphore", "sp.wait(dma)"),
    Misuse("Kinds", "copy on a regular semaphore", local("x, o, regular"), copies=True),
    Misuse("Kinds", "copy on a barrier semaphore", local("x, o, barrier"), copies=True),
    Misuse("Kinds", "wait for bytes on a regular semaphore", "sp.wait_bytes(regular, x)"),
    Misuse(
        "Kinds",
        "remote copy on a regular semaphore",
        remote('x, o, regular, dma, {"x": 1}'),
        axes="x",
        copies=True,
    ),
    Misuse("Kinds", "request of another kind", local("x, o, mistaken").replace(MISUSE, "")),
    Misuse(
        "Kinds",
        "raw ref adopted as another kind",
        f"sem = sp.adopt(regular.ref, sp.dma_semaphore()){MISUSE}\n"
        f"{local('x, o, sem').replace(MISUSE, '')}",
        copies=True,
        limit="a raw ref does not say its kind",
    ),
    Misuse("No semaphore", "signal of a string", 'sp.signal("banana")'),
    Misuse("No semaphore", "wait for a number", "sp.wait(3)"),
    Misuse("No semaphore", "signal of an int16 buffer", "sp.signal(short)"),
    Misuse("No semaphore", "wait for a float32 buffer", "sp.wait(single)"),
    Misuse("No semaphore", "read of a float32 buffer", "sp.read(single)"),
    Misuse("No semaphore", "copy on an int16 buffer", local("x, o, short"), copies=True),
    Misuse("No semaphore", "copy on None", local("x, o, None"), copies=True),
    Misuse(
        "No semaphore",
        "semaphore made by hand",
        "sp.signal(sp.Semaphore(short))",
        raw="sp.signal(short)",
    ),
    Misuse("Arrays and indices", "signal of an array", "sp.signal(sems)"),
    Misuse("Arrays and indices", "copy on an array", local("x, o, dmas"), copies=True),
    Misuse(
        "Arrays and indices",
        "index out of bounds",
        f"sp.signal(sems.at[2]){MISUSE}\nsp.wait(sems.at[1])",
        limit=VALUE,
        note="under `InterpretParams` the wait for `sems.at[1]`, which nothing signals, ends",
    ),
    Misuse(
        "Arrays and indices",
        "index below the bounds",
        f"sp.signal(sems.at[-3]){MISUSE}\nsp.wait(sems.at[0])",
        limit=VALUE,
        note="under `InterpretParams` the wait for `sems.at[0]`, which nothing signals, ends",
    ),
    Misuse("Arrays and indices", "bool as an index", "sp.signal(sems.at[True])", limit=BOOL),
    Misuse("Arrays and indices", "float as an index", "sp.signal(sems.at[0.5])"),
    Misuse(
        "Arrays and indices",
        "traced float as an index",
        "sp.signal(sems.at[x[0, 0]])",
        limit="jax.Array says nothing of its dtype",
    ),
    Misuse("Arrays and indices", "too many indices", "sp.signal(sems.at[0, 0])"),
    Misuse(
        "Amounts",
        "signal by 1.9",
        f"sp.signal(regular, 1.9){MISUSE}\nsp.wait(regular, 2)",
        note="it counts 1; the kernel waits for 2",
    ),
    Misuse("Amounts", "signal by a bool", "sp.signal(regular, True)", limit=BOOL),
    Misuse("Amounts", "signal by less than 0", "sp.signal(regular, -1)", limit=VALUE),
    Misuse("Amounts", "signal by 2**31", "sp.signal(regular, 2**31)", limit=VALUE),
    Misuse(
        "Amounts",
        "signal by a vector",
        "sp.signal(regular, jnp.ones(2, jnp.int32))",
        limit="jax.Array says nothing of its shape",
    ),
    Misuse("Amounts", "wait for 0", "sp.wait(regular, 0)", limit=VALUE),
    Misuse("Amounts", "wait for less than 0", "sp.wait(regular, -1)", limit=VALUE),
    Misuse("Amounts", "wait for 1.0", f"sp.signal(regular)\nsp.wait(regular, 1.0){MISUSE}"),
    Misuse(
        "Amounts",
        "wait without decrement",
        f"sp.signal(regular)\nsp.wait(regular, 1, decrement=False){MISUSE}\nsp.wait(regular)",
    ),
    Misuse("Device ids", "unknown axis", 'sp.signal(regular, device_id={"z": 0})', "x", limit=MESH),
    Misuse(
        "Device ids",
        "too many coordinates",
        "sp.signal(regular, device_id=(0, 0))",
        "x",
        limit=MESH,
    ),
    Misuse(
        "Device ids", "too few coordinates", "sp.signal(regular, device_id=(0,))", "xy", limit=MESH
    ),
    Misuse(
        "Device ids", "one number on two axes", "sp.signal(regular, device_id=1)", "xy", limit=MESH
    ),
    Misuse(
        "Device ids", "no such device", 'sp.signal(regular, device_id={"x": 7})', "x", limit=MESH
    ),
    Misuse(
        "Device ids",
        "bool as a device id",
        "sp.signal(regular, device_id={'x': True})",
        "x",
        limit=BOOL,
    ),
    Misuse("Device ids", "float as a device id", "sp.signal(regular, device_id=0.5)", "x"),
    Misuse("Device ids", "string as a device id", 'sp.signal(regular, device_id="x")', "x"),
    Misuse(
        "Device ids",
        "remote copy to no such device",
        remote('x, o, send, dma, {"x": 7}'),
        "x",
        limit=MESH,
    ),
    Misuse(
        "Copies",
        "copy between shapes",
        local("x.at[0], o, dma"),
        limit="shapes are not in the types of refs",
        copies=True,
    ),
    Misuse(
        "Copies",
        "copy between dtypes",
        f"ints[...] = jnp.ones((8, 128), jnp.int32)\n{local('ints, o, dma')}",
        limit="dtypes are not in the types of refs",
    ),
    Misuse("Copies", "copy of an array", local("x[...], o, dma"), copies=True),
    Misuse("Copies", "copy of a semaphore", local("regular, o, dma")),
    Misuse(
        "Copies",
        "wait_send of a local copy",
        f"copy = sp.make_async_copy(x, o, dma)\ncopy.start()\ncopy.wait_send(){MISUSE}",
        copies=True,
    ),
    Misuse(
        "Copies",
        "priority of a copy is 7",
        f"copy = sp.make_async_copy(x, o, dma)\ncopy.start(priority=7){MISUSE}\ncopy.wait()",
        limit=VALUE,
        copies=True,
    ),
    Misuse(
        "Scopes",
        "semaphore after its scope",
        "kept: list[sp.Semaphore] = []\n"
        "sp.run_scoped(lambda sem: kept.append(sem), sp.semaphore())\n"
        f"sp.signal(kept[0]){MISUSE}",
        limit="lifetimes are not in the types",
    ),
    Misuse(
        "Scopes",
        "copy after its scope",
        "kept: list[sp.LocalCopy] = []\n"
        "sp.run_scoped(\n"
        "    lambda sem: kept.append(sp.make_async_copy(x, o, sem)), sp.dma_semaphore()\n)\n"
        f"kept[0].start(){MISUSE}\nkept[0].wait()",
        limit="lifetimes are not in the types",
    ),
    Misuse(
        "Barriers",
        "barrier semaphore without a collective_id",
        f"common = sp.get_barrier_semaphore(){MISUSE}\nsp.signal(common)\nsp.wait(common)",
        axes="x",
        limit=CALL,
    ),
    Misuse(
        "Barriers",
        "collective_id without a barrier semaphore",
        "o[...] = x[...]",
        axes="x",
        params="collective_id=0",
        limit=CALL,
    ),
    Misuse(
        "Values",
        "truth of a semaphore",
        f"if regular:{MISUSE}\n    sp.signal(regular)",
        limit="every object has a truth value",
    ),
    Misuse("Values", "arithmetic with a semaphore", "o[0, 0] = x[0, 0] * (regular + 1)"),
    Misuse("Values", "store of a semaphore", "o[0, 0] = regular"),
    Misuse(
        "Values",
        "read under InterpretParams",
        "o[...] = jnp.full((8, 128), sp.read(regular), jnp.float32)",
        limit=CALL,
        interpret="pltpu.InterpretParams()",
    ),
    Misuse(
        "Resources",
        "600 semaphores",
        "sp.signal(many.at[599])",
        limit="types do not count",
    ),
]
