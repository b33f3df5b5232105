"""The types of TPU cores. A module of its own: the library and the verifier share it."""

import enum


class CoreType(enum.StrEnum):
    """What a mesh of cores is of, as ``mesh.core_type.name`` of Pallas has it."""

    TENSOR_CORE = "TC"  # what runs a kernel of `pallas_call`
    SCALAR_SUBCORE = "SC_SCALAR_SUBCORE"
    VECTOR_SUBCORE = "SC_VECTOR_SUBCORE"
