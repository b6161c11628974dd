#!/usr/bin/env python3
"""The C source of a program builds the same program: of all texts of the tests, of random programs and of what C has other
words for. All are compiled without warnings, and each builds a program of the same text and hash.

emit_c_test.py SOURCE LIBRARY COMPILER RANDOM_PROGRAM_TEXTS"""
import ctypes
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tilegen as tg
from tilegen._library import error_from, lib

RANDOM = int(os.environ.get("TILEGEN_COUNT", "60"))
FLAGS = ["-std=c11", "-O0", "-Wall", "-Wextra", "-Wshadow=compatible-local", "-Wmissing-prototypes", "-Werror"]
# No warning stays unseen, but for a name that a compiler does not know.
PEDANTIC = ["-pedantic", "-Wno-overlength-strings"]

# Names that C keeps for itself or that the source uses, numbers at the edges, and statements that only the text has.
WORDS = r"""tl 1 program main
param int = 64 in {32, 64}
param BM in {16, 8}
dim NULL >= 1 <= 4096 divisible 2
dim t
dim tl_x
dim unused_dim
scalar linux: f32
scalar unused_scalar: i64
scalar __LINE__: i32
tensor double: f32[NULL, t]
tensor the_double: f32[t * 2 + 1, 64] strides [128, 1]
tensor W: u4[NULL, 64] readonly
tensor weights: f16[64] constant optional
tensor INT64_MAX: i64[64]
tensor INFINITY: f16[8, 8]
tensor counts: i32[8]
tensor wide: u64[4]
tensor workspace_w: f32[t, 64] workspace
tensor unused_tensor: e4m3[t]
fn turned(for: i64, e0: i64, asm_ptx: i64, the_t: i64) -> (i64, f64)
  llvm "define {i64, double} @turned(i64 %a, i64 %b, i64 %c, i64 %d) { ; what? \ ??/ is % large, in a line that is longer than any of C"
       "" "  %r = sub i64 %a, %b" "  ; $0 \n" ""
  asm ptx "{ .reg .b64 two; add.s64 two, $2, $3;"
          "  sub.s64 $0, two, $4; cvt.rn.f64.s64 $1, $5; }"
{
  let twice = for * 3 + asm_ptx * 5 - min(for, e0 * 7 + asm_ptx * 11) // max(the_t, 13)
  return (twice ^ e0) * (twice ^ the_t) + select(twice < the_t, for * e0 * asm_ptx, the_t - twice), cast(f64, twice)
}
fn chained(x: f32, Y: f32) -> f32
  asm gcn "v_add_f32 $0, $1, $2"
  llvm ptx "define float @chained(float %x, float %y) { %r = fadd float %x, %y ret float %r }"
  llvm gcn "define float @chained(float %x, float %y) { %r = fadd float %y, %x ret float %r }"
  llvm host "define float @chained(float %x, float %y) { %r = fsub float %x, %y ret float %r }"
{ return select(isnan(x), 0x7fc00001:f32, x + Y) * cast(f32, turned:1(cast(i64, x), 1, -9223372036854775807 - 1, cast(i64, Y))) }
fn unused(x: f32, not_read: f32) -> f32 asm gcn "v_add_f32 $0, $1, $2" { return x }
kernel return_ grid (context: ceildiv(NULL, BM), e0: t, status: 2) threads 128 with {raster = grouped, group = 2} {
  alloc register: shared f32[BM, 64] {padding = 4}
  alloc _Bool: fragment f32[BM, 64]
  alloc unused_tile: local i32[int // 16]
  alloc olds: shared i32[8]
  alloc seen: local i64[1]
  alloc going: local bool[1]
  alloc small: shared u4[8, 64]
  fill register, -inf:f32
  fill _Bool, nan:f32
  seen[0] = -9223372036854775807 - 1
  going[0] = true
  label load: copy the_double[e0 * 2 :+ BM, 0 :+ 64] -> register {vector = 1}
  copy W[context * 8 :+ 8, 0 :+ 64] -> small
  serial at0 in context * 3 + e0 :+ t - 7 while going[0] and seen[0] < 5 {
    seen[0] = seen[0] + at0 % 3
    if seen[0] > 3 { break }
  }
  serial at0 in e0 .. t while seen[0] < 9 { seen[0] = seen[0] + 1 }
  serial for in e0 :+ t { seen[0] = seen[0] ^ for }
  while seen[0] > 2 { seen[0] = seen[0] // 2 }
  serial return_ in 0 .. 2 { seen[0] = seen[0] + return_ }
  parallel scope0, e1 in BM, 64 {
    _Bool[scope0, e1] = select(isnan(register[scope0, e1]) or linux < 0x7fc00001:f32, register[scope0, e1] * 0.1 + 1e30 - 3.0e-39,
        exp2(max(register[scope0, e1], _Bool[scope0, e1]) * linux) / (1 + sqrt(abs(register[scope0, e1] - linux))) + rsqrt(_Bool[scope0, e1]))
    assert register[scope0, e1] < 1.0e30, "what? \ ??/ is % large"
    print "tile", register[scope0, e1], scope0
  }
  parallel i in 8 {
    olds[i] = atomic_compare_exchange(counts[(i + context) % 8], 3, cast(i32, i) + __LINE__)
    atomic_add(counts[i], olds[i])
    atomic_compare_exchange(counts[i], 127, 5)
    let before = atomic_exchange(counts[7 - i], 2147483647)
    atomic_max(counts[cast(i64, before) % 8], popcount(before))
  }
  parallel i, j in 8, 8 { INFINITY[i, j] = select(i == j, 0x7e01:f16, select(i < j, 65504.0f16, 0.1f16)) }
  parallel i in 4 { wide[i] = cast(u64, i) * 18446744073709551615u64 + 9223372036854775808u64 }
  parallel i in 64 {
    let llvm, second = turned(i, turned:0(i, 1, 2, t), cast(i64, chained(linux, cast(f32, turned:1(7, 5, i, t)))), 4)
    INT64_MAX[i] = llvm + cast(i64, second)
  }
  parallel i in 64 { INT64_MAX[i] = cast(i64, bitcast(i4, small[i % 8, i])) + 4294967296 - 9223372036854775807 }
  if seen[0] == 1 { print "nothing" } else { print "seen", seen[0], linux }
  print "part" of register[1 :+ 2, 3 :+ 4]
  copy _Bool -> double[context * BM :+ BM, 0 :+ 64]
}
kernel second grid (b: 1) {
  alloc register: fragment f32[64, 64]
  alloc sums: fragment f32[64]
  fill register, 1
  fill sums, 0
  scan register -> register {kind = product, axis = 1, reverse, exclusive}
  cumsum register -> register {axis = 0}
  reduce register -> sums {kind = absmax, axis = 1, accumulate}
  serial second in 0 .. 1 { unroll return_ in 0 .. 2 { fill sums, cast(f32, second + return_) } }
  parallel i, j in 64, 64 { if i < j { register[i, j] = sums[i] } else { if i == 3 { register[i, j] = 0 } } }
  atomic register -> double[0 :+ 64, 0 :+ 64] {kind = add}
}
"""


def programs(source, random_texts, work):
    subprocess.run([random_texts, work, "1", str(RANDOM)], check=True)
    paths = sorted(path for folder in (source / "tests/files", source / "tests/differential/regressions", pathlib.Path(work))
                   for path in folder.rglob("*.tl"))
    yield "words", tg.Program.parse(WORDS)
    yield "words, bound", tg.Program.parse(WORDS, params={"int": 32, "BM": 8})
    for path in paths:
        text = path.read_text()
        if not re.search(r"^\s*tl 1 program", text, re.M):
            continue
        try:
            yield path.name, tg.Program.parse(text, str(path), include=path.parent)
        except tg.Error:
            assert "random" not in path.name, path  # files hold wrong programs, too


def main():
    source, library, compiler, random_texts = pathlib.Path(sys.argv[1]), *sys.argv[2:]
    with tempfile.TemporaryDirectory() as work:
        made = list(programs(source, random_texts, work))
        assert len(made) > 250, len(made)
        assert sum(name.startswith("random_") for name, _ in made) == RANDOM
        pieces = []
        for i, (name, program) in enumerate(made):
            build = "build_" + program.name
            pieces.append(f'#define {build} build_{i}_\n#line 1 "{name}.c"\n{program.emit_c()}#undef {build}\n')
            assert program.emit_c() == program.emit_c()
        unit = pathlib.Path(work, "programs.c")
        unit.write_text("".join(pieces))
        shared = pathlib.Path(work, "programs.so")
        subprocess.run([compiler, *FLAGS, *PEDANTIC, "-shared", "-fPIC", f"-I{source / 'include'}", str(unit), "-o", str(shared),
                        library], check=True)
        built = ctypes.CDLL(str(shared))
        context = made[0][1].context
        wrong = []
        for i, (name, program) in enumerate(made):
            handle, error = ctypes.c_void_p(), ctypes.c_void_p()
            status = built[f"build_{i}_"](context.handle, ctypes.byref(handle), ctypes.byref(error))
            if status != 0:
                wrong.append(f"{name}: {error_from(error, status)}")
                continue
            again = tg.Program(handle, context)
            if (again.hash, str(again)) != (program.hash, str(program)):
                difference = difflib.unified_diff(str(program).splitlines(), str(again).splitlines(), lineterm="", n=1)
                wrong.append("\n".join([f"{name}: another program is built:", *difference]))
        print(f"{len(made)} programs, {len(wrong)} wrong, {sum(map(len, pieces)) // 1024} KiB of C")
        print("\n".join(wrong[:8]))
        # A failed build hands nothing out and says why.
        handle, error = ctypes.c_void_p(1), ctypes.c_void_p()
        assert built["build_0_"](None, ctypes.byref(handle), ctypes.byref(error)) != 0 and not handle.value and error.value
        lib.tl_error_release(error)
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
