"""cuBLASLt by its C interface: the algorithms that its heuristic proposes for a product, to be measured one by one."""
import ctypes
import functools

import torch

_F16, _F32 = 2, 0                      # cudaDataType
_COMPUTE_F32, _TRANSPOSED = 68, 1      # cublasComputeType_t, cublasOperation_t
_TRANSA, _WORKSPACE_BYTES = 3, 1       # attributes of a description and of a preference
WORKSPACE = 64 << 20


class _Proposal(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("status", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


def _checked(status, what):
    if status:
        raise RuntimeError(f"{what}: status {status} of cuBLASLt")


@functools.cache
def _library():
    """The library that PyTorch brought, a handle, a workspace."""
    for name in ("libcublasLt.so.13", "libcublasLt.so.12"):
        try:
            lib = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise RuntimeError("no cuBLASLt")
    handle = ctypes.c_void_p()
    _checked(lib.cublasLtCreate(ctypes.byref(handle)), "cublasLtCreate")
    return lib, handle, torch.empty(WORKSPACE, dtype=torch.uint8, device="cuda")


def _attribute(set_one, of, which, value):
    _checked(set_one(of, which, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))), set_one.__name__)


def proposed(m, n, k, most):
    """[call(a, b, c)] of at most `most` algorithms for c = a b^T: a [m, k], b [n, k], c [m, n], f16 in rows, sums in f32."""
    lib, handle, workspace = _library()
    description, of_a, of_b, of_c, preference = (ctypes.c_void_p() for _ in range(5))
    _checked(lib.cublasLtMatmulDescCreate(ctypes.byref(description), _COMPUTE_F32, _F32), "cublasLtMatmulDescCreate")
    _attribute(lib.cublasLtMatmulDescSetAttribute, description, _TRANSA, ctypes.c_int32(_TRANSPOSED))
    # Its matrices are stored by columns: c^T = (b^T)^T a^T.
    for layout, rows, columns in ((of_b, k, n), (of_a, k, m), (of_c, n, m)):
        _checked(lib.cublasLtMatrixLayoutCreate(ctypes.byref(layout), _F16, ctypes.c_uint64(rows), ctypes.c_uint64(columns),
                                                ctypes.c_int64(rows)), "cublasLtMatrixLayoutCreate")
    _checked(lib.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)), "cublasLtMatmulPreferenceCreate")
    _attribute(lib.cublasLtMatmulPreferenceSetAttribute, preference, _WORKSPACE_BYTES, ctypes.c_size_t(WORKSPACE))
    found, count = (_Proposal * most)(), ctypes.c_int(0)
    _checked(lib.cublasLtMatmulAlgoGetHeuristic(handle, description, of_b, of_a, of_c, of_c, preference, most, found,
                                                ctypes.byref(count)), "cublasLtMatmulAlgoGetHeuristic")
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def call(proposal, a, b, c):
        pointer = lambda x: ctypes.c_void_p(x.data_ptr())
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _checked(lib.cublasLtMatmul(handle, description, ctypes.byref(one), pointer(b), of_b, pointer(a), of_a,
                                    ctypes.byref(zero), pointer(c), of_c, pointer(c), of_c, ctypes.byref(proposal.algorithm),
                                    pointer(workspace), ctypes.c_size_t(WORKSPACE), stream), "cublasLtMatmul")
    return [functools.partial(call, p) for p in found[:count.value] if p.status == 0]
