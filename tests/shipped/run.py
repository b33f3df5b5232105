"""Runs shipped kernels in the TPU interpreter, with and without the guard; no part of the tests.

In: names of kernels. Out: a line of JSON for each, with its name, whether the guarded results are
those without the guard, bit for bit, and what the guard checked.
"""

import json
import os
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=5"  # 0.10.2 needs one to spare

import jax
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from kernels import INTERPRETED, KERNELS

from safepallas import testing


def results(name: str) -> list[Any]:
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(**INTERPRETED[name])):
        fn, args = KERNELS[name]()
        return [np.asarray(out) for out in jax.tree_util.tree_leaves(jax.jit(fn)(*args))]


def main() -> None:
    for name in sys.argv[1:]:
        raw = results(name)
        with testing.guard_raw_pallas() as guard:
            ours = results(name)
        same = len(ours) == len(raw) and all(map(np.array_equal, ours, raw))
        print(json.dumps([name, same, guard.checked]), flush=True)


if __name__ == "__main__":
    main()
