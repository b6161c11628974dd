"""Builds tile programs. The same statements as the C interface, with operators and `with` blocks.

    b = Builder("scale")
    n = b.dim("n")
    x, y = b.tensor("X", f32, [n]), b.tensor("Y", f32, [n])
    with b.kernel("scale", [(n + 1023) // 1024]) as block:
        tile = b.fragment("tile", f32, [1024])
        b.copy(x[ds(block * 1024, 1024)], tile)
        with b.parallel(1024) as i:
            b.store(tile, i, tile(i) * 2.0)
        b.copy(tile, y[ds(block * 1024, 1024)])
    program = b.finish()

A box of a buffer is written buffer[start:stop, ...] as in Python, with a constant extent stop - start, or buffer[ds(start, size), ...].
An index takes one row of the dimension. buffer(i, j) is one element.
"""
import contextlib
import ctypes
import numbers

from . import _header as h
from ._library import call, lib as _lib
from .annotations import annotations_text, marked
from .arguments import choice, constants, listed
from .atomics import Atomics
from .boxes import Sum
from .combinations import Combinations
from .expressions import Buffer, Expr, Region, lib, sides_of, _Memory
from .maths import Maths
from .program import Program, int64_of
from .types import boolean, dtype_of, f32, i64, u64, DType, FLOATS

_CUT = ("cut it: of b in a grid, or a serial loop, of ceildiv(n, 64), b.parallel(64) has the elements b * 64 + i; beyond its end a tensor "
        "reads 0 and drops what is written")
_PARTS = "a tile holds a part of what only the launch knows: loop over the parts, or keep it in a tensor"
_POLICY = {"square": h.TL_POLICY_SQUARE, "full_row": h.TL_POLICY_FULL_ROW, "full_col": h.TL_POLICY_FULL_COL}


class Builder(Atomics, Combinations, Maths):
    def __init__(self, name, context=None, params=None):
        """`params`: {name: value} of the compile-time parameters that `param` declares."""
        handle = ctypes.c_void_p()
        from .program import default_context
        self.context = context or default_context()
        call("tl_builder_create", self.context.handle, name.encode(), ctypes.byref(handle))
        self.handle = handle
        for key, value in (params or {}).items():
            _lib.tl_builder_bind(self.handle, key.encode(), int64_of(value))

    def __del__(self):
        if getattr(self, "handle", None):
            lib.forget(self.handle)
            _lib.tl_builder_destroy(self.handle)

    def finish(self):
        """Checks the program and returns it; raises Error with every diagnostic."""
        program = ctypes.c_void_p()
        call("tl_builder_finish", self.handle, ctypes.byref(program))
        return Program(program, self.context)

    # Expressions.

    def type_of_number(self, value):
        """The one that a number has where nothing says another."""
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise TypeError(f"{type(value).__name__} is neither an expression of a tile program nor a number"
                            + ("; buffer(i, j) is one element" if isinstance(value, _Memory) else ""))
        return boolean if isinstance(value, bool) else i64 if isinstance(value, numbers.Integral) else f32

    def expr(self, value, dtype=None):
        """An Expr of an Expr or a number; numbers take `dtype`, else i64 or f32. A number that an integer type does not
        have is refused."""
        if isinstance(value, Expr):
            return value.of(dtype)
        usual = self.type_of_number(value)
        dtype = dtype or usual
        if dtype in FLOATS:
            return Expr(self, lib.tl_const_f64(self.handle, dtype.value, float(value)))
        if not isinstance(value, numbers.Integral) and not float(value).is_integer():
            raise TypeError(f"{value} is no {dtype.name}; cast the expression to a float type first")
        if dtype is u64 and 2**63 <= value < 2**64:
            return Expr(self, lib.tl_cast(self.handle, u64.value, self.expr(int(value) - 2**64, i64).raw))
        raw = lib.tl_const_i64(self.handle, dtype.value, int(value))
        return Expr(self, raw, sum=Sum({}, int(value)) if dtype is i64 else None)

    def load(self, buffer, *indices):
        raw = [self.expr(i, i64).raw for i in indices]
        return Expr(self, lib.tl_load(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw)))

    # Parameters.

    def param(self, name, values):
        """Declares a compile-time parameter with a domain of ints, or of types; gives the one that this build uses, the domain's
        first unless the builder was given another."""
        values = list(values)
        raw = [int64_of(v) for v in values]
        chosen = lib.tl_param(self.handle, name.encode(), (ctypes.c_int64 * len(raw))(*raw), len(raw))
        return next((v for v, number in zip(values, raw) if number == chosen and isinstance(v, DType)), chosen)

    def dim(self, name, lower=0, upper=2**63 - 1, divisor=1):
        """A symbolic extent, with what is known of it."""
        e = Expr(self, lib.tl_dim(self.handle, name.encode()), name)
        if (lower, upper, divisor) != (0, 2**63 - 1, 1):
            lib.tl_dim_fact(self.handle, e.raw, lower, upper, divisor)
        return e

    def scalar(self, name, dtype):
        return Expr(self, lib.tl_scalar(self.handle, name.encode(), dtype_of(dtype).value), name)

    def tensor(self, name, dtype, shape, strides=None, read_only=False, codes=None, optional=False,
               constant=False):
        """Global memory. `constant`: read-only, and no kernel still under way when a launch is queued writes it (weights),
        so that blocks may read it before the kernel in front of them has ended. `codes`: the packed type whose codes the bytes of a u8 tensor are. `optional`: a launch may pass
        None; `present` asks, and every access stands where it holds."""
        dtype, shape = dtype_of(dtype), listed(shape)
        n = len(shape)
        exprs = lambda list_: (h.tl_expr * n)(*(self.expr(e, i64).raw for e in list_))
        raw = lib.tl_tensor(self.handle, name.encode(), dtype.value, n, exprs(shape), exprs(listed(strides)) if strides is not None else None,
                            (h.TL_TENSOR_READ_ONLY if read_only else 0) | (h.TL_TENSOR_CONSTANT if constant else 0) |
                            (h.TL_TENSOR_OPTIONAL if optional else 0))
        if codes is not None:
            lib.tl_tensor_codes(self.handle, raw, dtype_of(codes).value)
        return Buffer(self, raw, shape, dtype, name)

    def present(self, tensor):
        """Whether the launch passes an optional tensor, a bool for conditions and selects."""
        return Expr(self, lib.tl_present(self.handle, tensor.raw), f"present({tensor.name})")

    def workspace(self, name, dtype, shape):
        """A tensor that each launch has of its own and no argument gives: what a program's kernels leave for each other."""
        dtype, shape = dtype_of(dtype), listed(shape)
        n = len(shape)
        raw = lib.tl_tensor(self.handle, name.encode(), dtype.value, n, (h.tl_expr * n)(*(self.expr(e, i64).raw for e in shape)),
                            None, h.TL_TENSOR_WORKSPACE)
        return Buffer(self, raw, shape, dtype, name)

    # Scopes.

    @contextlib.contextmanager
    def _scope(self, raw, value):
        yield value
        lib.tl_end(self.handle, raw)

    def _variables(self, raw, names, what):
        """`what` they are, for messages about those without a name."""
        out = [Expr(self, h.tl_expr(v.bits), names[i] if names else f"({what} {i})") for i, v in enumerate(raw)]
        return out[0] if len(out) == 1 else out

    def kernel(self, name, grid, threads=0, names=None, **annotations):
        """Opens a kernel; gives its block index, or a list of them for a grid of several dimensions. What else is given are
        annotations: raster="grouped", group=8."""
        grid = listed(grid)
        n = len(grid)
        blocks = (h.tl_expr * n)()
        given = (ctypes.c_char_p * n)(*(s.encode() for s in names)) if names else None
        raw = lib.tl_begin_kernel(self.handle, name.encode(), n, (h.tl_expr * n)(*(self.expr(g, i64).raw for g in grid)),
                                  threads, given, blocks)
        if annotations:
            lib.tl_annotate_kernel(self.handle, annotations_text(annotations).encode())
        return self._scope(raw, self._variables(blocks, names, "block index"))

    def _loop(self, kind, begin, end, stages, name, step, condition=None):
        """As of Python's range: begin is 0 where one end alone is given."""
        begin, end = (0, begin) if end is None else (begin, end)
        (step,) = constants([step], "the step of a loop", "count iterations, and multiply inside")
        if step < 1:
            raise ValueError(f"a loop has the step {step}, expected at least 1; count upwards, and subtract from the end inside")
        if step > 1 and isinstance(begin, Expr):
            begin = self.let(begin)  # it is taken once
        first, span = self.expr(0 if step > 1 else begin, i64), Sum.of(end).plus(Sum.of(begin), -1)
        count = self.expr(span.plus(Sum({}, step - 1)).value(), i64) // step
        var, name_ = h.tl_expr(), name.encode() if name else None
        if condition is None and step == 1:
            raw = lib.tl_begin_loop(self.handle, kind, first.raw, self.expr(end, i64).raw, stages, name_, ctypes.byref(var))
        else:
            held = h.tl_expr(0) if condition is None else self.expr(condition, boolean).raw
            raw = lib.tl_begin_counted_loop(self.handle, kind, first.raw, count.raw, held, stages, name_, ctypes.byref(var))
        var = Expr(self, var, name or "(loop variable)")
        return self._scope(raw, var if step == 1 else begin + var * step)

    @marked
    def serial(self, begin, end=None, name=None, condition=None, step=1):
        """with b.serial(0, n) as i, or b.serial(n), b.serial(0, n, step=4): as of Python's range. With a condition the first
        iteration where that does not hold ends it: as of loop_while. Inside parallel loops the bounds may be those of a point."""
        return self._loop(h.TL_LOOP_SERIAL, begin, end, 0, name, step, condition)

    @marked
    def unroll(self, begin, end=None, name=None, step=1):
        return self._loop(h.TL_LOOP_UNROLL, begin, end, 0, name, step)

    @marked
    def vectorized(self, begin, end=None, name=None, step=1):
        return self._loop(h.TL_LOOP_VECTORIZED, begin, end, 0, name, step)

    @marked
    def loop_while(self, condition):
        """Opens a loop that runs while the condition holds: inside a parallel loop that of each point, else the same for the
        block."""
        return self._scope(lib.tl_begin_while(self.handle, self.expr(condition, boolean).raw), None)

    def leave_loop(self): lib.tl_break(self.handle)
    def next_iteration(self): lib.tl_continue(self.handle)
    def leave_kernel(self): lib.tl_return(self.handle)

    @marked
    def pipelined(self, begin, end=None, stages=0, name=None, step=1):
        return self._loop(h.TL_LOOP_PIPELINED, begin, end, stages, name, step)

    @marked
    def parallel(self, *extents, names=None):
        n, extents = len(extents), constants(extents, "an extent of a parallel loop", _CUT)
        variables = (h.tl_expr * n)()
        given = (ctypes.c_char_p * n)(*(s.encode() for s in names)) if names else None
        raw = lib.tl_begin_parallel(self.handle, n, (ctypes.c_int64 * n)(*extents), given, variables)
        return self._scope(raw, self._variables(variables, names, "index of parallel"))

    def threads(self, *extents, names=None):
        """with b.threads(4, 32) as (warp, lane): what every thread of the block runs, each with numbers of its own; the
        extents multiply to the kernel's threads, and the last one counts the lanes of shuffle, any, all and ballot."""
        n, extents = len(extents), constants(extents, "an extent of a block of threads", "they multiply to the kernel's threads")
        variables = (h.tl_expr * n)()
        given = (ctypes.c_char_p * n)(*(s.encode() for s in names)) if names else None
        raw = lib.tl_begin_threads(self.handle, n, (ctypes.c_int64 * n)(*extents), given, variables)
        return self._scope(raw, self._variables(variables, names, "index of threads"))

    def _id(self, kind):
        return Expr(self, lib.tl_id(self.handle, kind))

    def thread_id(self):
        """In threads: the thread's number in its block, row-major in the extents of threads."""
        return self._id(h.TL_ID_THREAD)

    def lane_id(self):
        """In threads: thread_id() % 32."""
        return self._id(h.TL_ID_LANE)

    def warp_id(self):
        """In threads: thread_id() // 32."""
        return self._id(h.TL_ID_WARP)

    def warpgroup_id(self):
        """In threads: thread_id() // 128."""
        return self._id(h.TL_ID_WARPGROUP)

    def block_id(self):
        """The block's number in its grid, row-major."""
        return self._id(h.TL_ID_BLOCK)

    def cluster_rank(self):
        """The block's number in the cluster that the kernel is annotated with; 0 where it is with none."""
        return self._id(h.TL_ID_CLUSTER_RANK)

    def cluster_blocks(self):
        """The number of blocks in that cluster."""
        return self._id(h.TL_ID_CLUSTER_BLOCKS)

    def _shuffle(self, kind, value, lane):
        return Expr(self, lib.tl_shuffle(self.handle, kind, value.raw, self.expr(lane, i64).raw))

    def shuffle(self, value, lane):
        """In threads: the value that the lane of this number has."""
        return self._shuffle(h.TL_SHUFFLE_INDEX, value, lane)

    def shuffle_xor(self, value, mask):
        """The value of the lane whose number is the own one ^ mask."""
        return self._shuffle(h.TL_SHUFFLE_XOR, value, mask)

    def shuffle_up(self, value, by):
        """The value of the lane so many before; the first ones keep their own."""
        return self._shuffle(h.TL_SHUFFLE_UP, value, by)

    def shuffle_down(self, value, by):
        """The value of the lane so many behind; the last ones keep their own."""
        return self._shuffle(h.TL_SHUFFLE_DOWN, value, by)

    def vote_any(self, condition):
        """In threads: the condition holds for one of the lanes."""
        return Expr(self, lib.tl_vote(self.handle, h.TL_VOTE_ANY, condition.raw))

    def vote_all(self, condition):
        """The condition holds for all of the lanes."""
        return Expr(self, lib.tl_vote(self.handle, h.TL_VOTE_ALL, condition.raw))

    def ballot(self, condition):
        """u32: the lanes for which the condition holds, as bits."""
        return Expr(self, lib.tl_vote(self.handle, h.TL_VOTE_BALLOT, condition.raw))

    def elect(self, condition):
        """bool: this lane is the first one for which the condition holds."""
        return Expr(self, lib.tl_vote(self.handle, h.TL_VOTE_ELECT, condition.raw))

    def match_any(self, value):
        """u32: the lanes that have the own value, an integer, as bits."""
        return Expr(self, lib.tl_vote(self.handle, h.TL_VOTE_MATCH_ANY, value.raw))

    def barrier(self):
        """In threads: all meet, and see behind it what any has stored before it."""
        lib.tl_barrier(self.handle)

    @marked
    def copy_async(self, src, dst):
        """In threads: an asynchronous copy of the thread, of 4, 8 or 16 bytes that lie beside each other in a tensor."""
        lib.tl_copy_async(self.handle, self._region(src), self._region(dst))

    @marked
    def copy_bulk(self, src, dst):
        """The warps that come by copy a box of a tensor to one of a shared tile: x[ds(r, 4), ds(c, 128)], ring[s, ds(0, 4), ds(0, 128)].
        An arrival with copies, or a wait_group, is what says that it is there."""
        lib.tl_copy_bulk(self.handle, self._region(src), self._region(dst))

    def commit_group(self):
        """Closes the group of each thread's asynchronous copies since the last one."""
        lib.tl_commit_group(self.handle)

    def wait_group(self, pending=0):
        """Copies of the newest `pending` groups may still be under way; all others are done."""
        lib.tl_wait_group(self.handle, pending)

    def mbarriers(self, name, count, arrivals):
        """An array of transaction barriers: a phase of each is complete when so many threads have arrived."""
        return self.shared(name, u64, [count], arrivals=arrivals)

    @marked
    def mbarrier_arrive(self, barrier, copies=False, first=0, threads=0, elected=False):
        """Threads arrive at full[s]: in a block of threads those that come by, outside of one `threads` from `first` on, or all.
        `copies`: each when its asynchronous copies before are done. `elected`: one lane for each warp."""
        flags = h.TL_ARRIVE_COPIES * copies | h.TL_ARRIVE_ELECTED * elected
        lib.tl_mbarrier_arrive(self.handle, self._region(barrier), first, threads, flags)

    @marked
    def mbarrier_wait(self, barrier, parity, first=0, threads=0):
        """They go on when the phase of this parity has all its arrivals; the one before the first counts as complete."""
        lib.tl_mbarrier_wait(self.handle, self._region(barrier), self.expr(parity, i64).raw, first, threads)

    def named_barriers(self, name, count, threads):
        """An array of barriers of the machine, each for so many threads, those that only arrive among them."""
        return self.shared(name, u64, [count], participants=threads)

    @marked
    def barrier_sync(self, barrier, first=0, threads=0):
        """The threads that come by meet the other participants of turn[s]: what these did before is there behind it."""
        lib.tl_barrier_sync(self.handle, self._region(barrier), first, threads)

    @marked
    def barrier_arrive(self, barrier, first=0, threads=0):
        """They count as participants of turn[s], and go on: what they did before is there for those that meet."""
        lib.tl_barrier_arrive(self.handle, self._region(barrier), first, threads)

    @marked
    def branch(self, condition):
        """with b.branch(c) as otherwise: ...; otherwise() begins the other branch."""
        raw = lib.tl_begin_if(self.handle, self.expr(condition, boolean).raw)
        return self._scope(raw, lambda: lib.tl_begin_else(self.handle, raw))

    @contextlib.contextmanager
    def switch(self, value):
        """with b.switch(v) as case: with case(0, 3): ...; with case(): ... is taken where no other is, and is the last."""
        raw = lib.tl_begin_switch(self.handle, value.raw)

        def case(*values):
            values = [int64_of(v) for v in values]
            return self._scope(lib.tl_begin_case(self.handle, raw, len(values), (ctypes.c_int64 * len(values))(*values)), None)

        yield case
        lib.tl_end(self.handle, raw)

    # Tiles and statements.

    def _label(self, name): lib.tl_label(self.handle, name.encode())
    def _annotate(self, text): lib.tl_annotate(self.handle, text.encode())

    def alloc(self, name, scope, dtype, shape, **annotations):
        """A tile of the kernel; what else is given are annotations: swizzle=128, padding=8, layout=lambda i, j: i * 72 + j."""
        dtype, shape = dtype_of(dtype), constants(listed(shape), f"an extent of the tile '{name}'", _PARTS)
        n = len(shape)
        raw = lib.tl_alloc(self.handle, name.encode(), scope, dtype.value, n, (ctypes.c_int64 * n)(*shape))
        if annotations:
            lib.tl_annotate_tile(self.handle, raw, annotations_text(annotations).encode())
        return Buffer(self, raw, shape, dtype, name)

    def shared(self, name, dtype, shape, **annotations): return self.alloc(name, h.TL_SCOPE_SHARED, dtype, shape, **annotations)
    def fragment(self, name, dtype, shape, **annotations): return self.alloc(name, h.TL_SCOPE_FRAGMENT, dtype, shape, **annotations)
    def local(self, name, dtype, shape, **annotations): return self.alloc(name, h.TL_SCOPE_LOCAL, dtype, shape, **annotations)

    def _axis(self, axis, region):
        """Axes from the last on are -1, -2, ..."""
        rank = len(region.shape)
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} of a region of {rank} dimensions")
        return axis % rank

    def _region(self, r):
        if isinstance(r, Region):
            return r.raw
        if not isinstance(r, Buffer):
            raise TypeError(f"an operation takes tensors, tiles and boxes of them, not {type(r).__name__}; a value is for fill, and for "
                            "store in a parallel loop")
        return lib.tl_whole(self.handle, r.raw)

    @marked
    def copy(self, src, dst):
        """dst = src. copy(x[k * 64, 0], tile) and copy(tile, y[k * 64, 0]) take the tile's extents for the tensor's last dimensions."""
        src, dst = sides_of(src, dst)
        lib.tl_copy(self.handle, self._region(src), self._region(dst))

    @marked
    def fill(self, dst, value):
        dtype = getattr(dst.buffer if isinstance(dst, Region) else dst, "dtype", None)
        lib.tl_fill(self.handle, self._region(dst), self.expr(value, dtype).raw)

    @marked
    def gemm(self, a, b, c, transpose_a=False, transpose_b=False, clear=False, policy=h.TL_POLICY_DEFAULT,
             tf32=False, promote=False):
        """c += a * b; policy: "square", "full_row" or "full_col"; with tf32 the f32 operands may be reduced to that; with promote the sums of
        matrix instructions on 8-bit floats are added to c in f32 after 128 products each."""
        policy = choice(_POLICY, policy, "warp policy")
        flags = (h.TL_GEMM_TRANSPOSE_A * transpose_a | h.TL_GEMM_TRANSPOSE_B * transpose_b | h.TL_GEMM_CLEAR * clear
                 | h.TL_GEMM_TF32 * tf32 | h.TL_GEMM_PROMOTE * promote)
        lib.tl_gemm(self.handle, self._region(a), self._region(b), self._region(c), flags, policy)

    @marked
    def gemm_sparse(self, values, meta, b, c, transpose_a=False, transpose_b=False, clear=False, policy=h.TL_POLICY_DEFAULT):
        """c += a * b of an a that compress made: values are m x k / 2, meta m x k / w words of w bits; the others as of gemm."""
        policy = choice(_POLICY, policy, "warp policy")
        flags = h.TL_GEMM_TRANSPOSE_A * transpose_a | h.TL_GEMM_TRANSPOSE_B * transpose_b | h.TL_GEMM_CLEAR * clear
        lib.tl_gemm_sparse(self.handle, self._region(values), self._region(meta), self._region(b), self._region(c), flags, policy)

    def check(self, condition, message):
        """Asserts: a launch fails with the message and the first place where condition does not hold."""
        lib.tl_assert(self.handle, self.expr(condition).raw, message.encode())

    def print(self, text, *values):
        """A launch prints the text and the values, for each iteration of a parallel loop around."""
        raw = [self.expr(v).raw for v in values]
        lib.tl_print(self.handle, text.encode(), len(raw), (h.tl_expr * len(raw))(*raw))

    def print_tile(self, text, region):
        """A launch prints each element of the region."""
        lib.tl_print_tile(self.handle, text.encode(), self._region(region))

    def let(self, value, name=None):
        """What the value of an expression is at this place, whatever is stored later."""
        return Expr(self, lib.tl_let(self.handle, name.encode() if name else None, self.expr(value).raw), name)

    def var(self, value, name=None, dtype=None):
        """The same inside a parallel loop, for a value that assign() changes."""
        return Expr(self, lib.tl_var(self.handle, name.encode() if name else None, self.expr(value, dtype).raw), name)

    def assign(self, var, value):
        lib.tl_assign(self.handle, var.raw, self.expr(value, var.dtype).raw)

    @marked
    def store(self, buffer, *indices_and_value):
        *indices, value = indices_and_value
        raw = [self.expr(i, i64).raw for i in indices]
        lib.tl_store(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw), self.expr(value, buffer.dtype).raw)
