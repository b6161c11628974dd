"""The static model of bench/amd on loops whose cycles are known, and what it says of the code of this library.
amd_loops_test.py SOURCE TOOL"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])
TOOL = sys.argv[2]
sys.path.insert(0, str(SOURCE / "bench/amd"))
import loop_model  # noqa: E402

PRODUCT = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]"


def code(*body, vgprs=512, threads=256):
    lines = "\n".join(f"\t{line}" for line in body)
    return (f"loop:\n.LBB0_1:\n{lines}\n\ts_cbranch_scc1 .LBB0_1\n\ts_endpgm\n\t.amdhsa_next_free_vgpr {vgprs}\n"
            f"    .max_flat_workgroup_size: {threads}\n    .name:           loop\n")


def cycles_of(*body, target="gfx942", **more):
    share, cycles, *_ = loop_model.estimate(code(*body, **more), target)
    return share, cycles


class Model(unittest.TestCase):
    def test_products_alone_keep_the_units_busy(self):
        share, cycles = cycles_of(*[PRODUCT] * 16)
        self.assertAlmostEqual(cycles, 16 * 32)
        self.assertAlmostEqual(share, 1)

    def test_rates_of_a_generation(self):
        self.assertAlmostEqual(cycles_of(*["v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]"] * 16, target="gfx90a")[1], 16 * 64)
        self.assertAlmostEqual(cycles_of(*["v_mfma_f32_32x32x2_f32 a[0:15], v0, v2, a[0:15]"] * 16)[1], 16 * 64)

    def test_a_load_that_is_waited_for_shows(self):
        load = "global_load_dwordx4 v[4:7], v8, s[0:1]"
        share, cycles = cycles_of(load, "s_waitcnt vmcnt(0)", PRODUCT)
        self.assertGreater(cycles, 800)
        self.assertLess(share, 0.05)

    def test_a_load_of_an_iteration_before_does_not(self):
        load = "global_load_dwordx4 v[4:7], v8, s[0:1]"
        self.assertGreater(cycles_of("s_waitcnt vmcnt(0)", load, *[PRODUCT] * 32)[0], 0.98)

    def test_of_two_ways_to_wait_the_one_that_leaves_loads(self):
        load = "global_load_lds_dword v[4:5], off"
        body = ["s_cbranch_scc1 .LBB0_2", "s_waitcnt vmcnt(1)", "s_branch .LBB0_3"]
        for beside in ([], ["s_mov_b64 s[2:3], 0"]):
            labels = [".LBB0_2:", "s_waitcnt vmcnt(0)", *beside, ".LBB0_3:", load, *[PRODUCT] * 32]
            self.assertGreater(cycles_of(*body, *labels)[0], 0.95)

    def test_shared_memory_is_one_for_all_units(self):
        # 4 waves read 1024 bytes each by an instruction, 128 a cycle
        _, cycles = cycles_of(*["ds_read_b128 v[4:7], v8"] * 32, "s_waitcnt lgkmcnt(0)", PRODUCT)
        self.assertGreaterEqual(cycles, 4 * 32 * 8)

    def test_other_waves_work_beside_a_wait(self):
        body = ["ds_read_b128 v[4:7], v8", "s_waitcnt lgkmcnt(0)", *[PRODUCT] * 2]
        alone, beside = cycles_of(*body)[0], cycles_of(*body, vgprs=128)[0]
        self.assertLess(alone, 0.6)
        self.assertGreater(beside, 0.9)

    def test_blocks_of_few_waves_share_the_units(self):
        # Two blocks of two waves have a unit for each wave.
        self.assertGreater(cycles_of(*[PRODUCT] * 16, vgprs=256, threads=128)[0], 0.95)

    def test_exponentials_take_the_port(self):
        _, cycles = cycles_of(*["v_exp_f32_e32 v4, v4"] * 16, PRODUCT)
        self.assertGreaterEqual(cycles, 16 * 16)


# Products of docs/performance.md, m, n and k.
PRODUCTS = {"M0": (4096, 1024, 8192), "M1": (4096, 8192, 8192), "M2": (4096, 28672, 8192), "M3": (4096, 8192, 28672),
            "M4": (8192, 1024, 8192), "M5": (8192, 8192, 8192), "M6": (8192, 28672, 8192), "M7": (8192, 8192, 28672)}


def over(extent, tile):
    return extent // tile if isinstance(tile, int) else f"{extent} // {tile}"


def gemm(transpose_b, tile=(128, 128, 32), threads=256, types=("f16", "f32", "f16"), sizes=(8192, 8192, 8192), parts=1):
    """Tiles are numbers, or names of parameters. With several parts of the depth, each leaves its sums in a workspace, which a second kernel adds."""
    m, n, k = tile
    rows, columns, depth = sizes
    b_shape = (columns, depth) if transpose_b else (depth, columns)
    operand, total, result = types
    zero = "0i32" if total == "i32" else "0.0f32"
    own = depth // parts
    part, deep, sums = ((f"part: {parts}, ", f"part * {own} + ko * {k}", "P[part :+ 1, ") if parts > 1
                        else ("", f"ko * {k}", "C["))
    workspace = f"tensor P: {total}[{parts}, {rows}, {columns}] workspace\n" if parts > 1 else ""
    b, take = ((f"[{n}, {k}]", f"B[bx * {n} :+ {n}, {deep} :+ {k}]") if transpose_b
               else (f"[{k}, {n}]", f"B[{deep} :+ {k}, bx * {n} :+ {n}]"))
    together = f"""kernel sum grid (by: {rows // 32}, bx: {columns // 128}) threads 256 {{
  alloc acc: fragment {total}[32, 128]
  alloc term: fragment {total}[32, 128]
  fill acc, {zero}
  serial part in 0 .. {parts} {{
    copy P[part :+ 1, by * 32 :+ 32, bx * 128 :+ 128] -> term
    parallel i, j in 32, 128 {{ acc[i, j] = acc[i, j] + term[i, j] }}
  }}
  copy acc -> C[by * 32 :+ 32, bx * 128 :+ 128]
}}
""" if parts > 1 else ""
    return f"""tl 1 program gemm
tensor A: {operand}[{rows}, {depth}] readonly
tensor B: {operand}[{b_shape[0]}, {b_shape[1]}] readonly
tensor C: {result}[{rows}, {columns}]
{workspace}kernel gemm grid ({part}by: {over(rows, m)}, bx: {over(columns, n)}) threads {threads} {{
  alloc As: shared {operand}[{m}, {k}]
  alloc Bs: shared {operand}{b}
  alloc acc: fragment {total}[{m}, {n}]
  fill acc, {zero}
  pipelined ko in 0 .. {over(own, k)} {{
    copy A[by * {m} :+ {m}, {deep} :+ {k}] -> As
    copy {take} -> Bs
    gemm As, Bs -> acc{' {transpose_b}' if transpose_b else ''}
  }}
  copy acc -> {sums}by * {m} :+ {m}, bx * {n} :+ {n}]
}}
{together}"""


TILES = [((128, 128, 32), 256), ((128, 128, 64), 256), ((128, 64, 64), 256), ((256, 64, 32), 256), ((64, 64, 64), 256),
         ((256, 128, 32), 256), ((64, 64, 64), 128)]


def both_models(transpose_b, tile, threads, sizes, stages):
    """Microseconds of the loops of all blocks by the model of loops, and of the kernel by the cost model."""
    text = re.sub(r"(pipelined ko in 0 \.\. \d+)", rf"\1 stages {stages}", gemm(transpose_b, tile, threads, sizes=sizes))
    if re.search(r"^ +split ", plan_of(text), re.M):
        return None  # blocks of one tile end one after the other
    _, _, kernel, body, _ = estimate(text)
    grid = sizes[0] // tile[0] * (sizes[1] // tile[1])
    return loop_model.cycles_of_grid(kernel, body, "gfx942", grid, sizes[2] // tile[2]) / 2100, microseconds(text)


def attention(rows, keys, threads, dim=128):
    return f"""tl 1 program attention
dim heads >= 1
scalar scale: f32
tensor Q: f16[heads, 4096, {dim}] readonly
tensor K: f16[heads, 4096, {dim}] readonly
tensor V: f16[heads, 4096, {dim}] readonly
tensor O: f16[heads, 4096, {dim}]
kernel attention grid (h: heads, bq: {4096 // rows}) threads {threads} {{
  alloc Qs: fragment f16[{rows}, {dim}]
  alloc Ks: shared f16[{keys}, {dim}]
  alloc Vs: shared f16[{keys}, {dim}]
  alloc scores: fragment f32[{rows}, {keys}]
  alloc weights: fragment f16[{rows}, {keys}]
  alloc out: fragment f32[{rows}, {dim}]
  alloc top: fragment f32[{rows}]
  alloc before: fragment f32[{rows}]
  alloc part: fragment f32[{rows}]
  alloc total: fragment f32[{rows}]
  copy Q[h :+ 1, bq * {rows} :+ {rows}, 0 :+ {dim}] -> Qs
  fill out, 0.0f32
  fill total, 0.0f32
  fill top, -1e+30f32
  pipelined kb in 0 .. {4096 // keys} {{
    copy K[h :+ 1, kb * {keys} :+ {keys}, 0 :+ {dim}] -> Ks
    gemm Qs, Ks -> scores {{transpose_b, policy=full_row, clear}}
    copy top -> before
    reduce scores -> top {{kind=max, axis=1, accumulate}}
    parallel i, j in {rows}, {keys} {{ scores[i, j] = exp2(scores[i, j] * scale - top[i] * scale) }}
    parallel i in {rows} {{ before[i] = exp2((before[i] - top[i]) * scale) }}
    reduce scores -> part {{axis=1}}
    parallel i in {rows} {{ total[i] = total[i] * before[i] + part[i] }}
    copy scores -> weights
    parallel i, j in {rows}, {dim} {{ out[i, j] = out[i, j] * before[i] }}
    copy V[h :+ 1, kb * {keys} :+ {keys}, 0 :+ {dim}] -> Vs
    gemm weights, Vs -> out {{policy=full_row}}
  }}
  parallel i, j in {rows}, {dim} {{ out[i, j] = out[i, j] / total[i] }}
  copy out -> O[h :+ 1, bq * {rows} :+ {rows}, 0 :+ {dim}]
}}
"""


def estimate(text, target="gfx942", options=()):
    with tempfile.TemporaryDirectory() as folder:
        program, assembly = pathlib.Path(folder) / "p.tl", pathlib.Path(folder) / "p.s"
        program.write_text(text)
        subprocess.run([TOOL, "compile", program, "--target", target, "--emit", "asm", "-o", assembly, *options],
                       check=True, capture_output=True)
        return loop_model.estimate(assembly.read_text(), target)


def plan_of(text, target="gfx942"):
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "p.tl"
        program.write_text(text)
        return subprocess.run([TOOL, "show", program, "--target", target], check=True, capture_output=True, text=True).stdout


def microseconds(text, target="gfx942"):
    """Of all kernels, as the cost model has it."""
    shown = plan_of(text, target)
    return float(re.search(rf"cost on {target}: ([0-9.]+) us", shown)[1])


class Code(unittest.TestCase):
    """Shares as docs/hip.md has them. Queries of attention stay in registers, so that shared memory has room for two blocks."""

    def holds(self, least, text, options=()):
        share, cycles, kernel, body, blocks = estimate(text, options=options)
        print(f"{kernel.name}: {share:.3f}, {cycles:.0f} cycles, {blocks} blocks, {kernel.vgprs} registers")
        self.assertFalse([i.text for i in body if i.text.startswith("scratch_")])
        self.assertGreaterEqual(share, least)

    def test_gemm(self):
        self.holds(0.90, gemm(transpose_b=True))
        self.holds(0.95, gemm(transpose_b=False))

    def test_gemm_of_other_sizes(self):
        # M0 has fewer tiles than the device compute units: each has one block, whose loop waits for nothing.
        tiles = {"M0": (128, 128, 64), "M4": (256, 64, 32)}
        few = {("M0", True): 0.91, ("M0", False): 0.80, ("M4", True): 0.95, ("M4", False): 0.88}
        for name, sizes in PRODUCTS.items():
            for transpose_b in [True, False]:
                with self.subTest(name, transpose_b=transpose_b):
                    least = few.get((name, transpose_b), 0.95)
                    self.holds(least, gemm(transpose_b, tiles.get(name, (128, 128, 32)), sizes=sizes))

    def test_gemm_of_few_tiles_and_a_deep_sum(self):
        # Parts of the depth make blocks enough for tiles of the usual size.
        for transpose_b in [True, False]:
            with self.subTest(transpose_b=transpose_b):
                self.holds(0.95, gemm(transpose_b, sizes=PRODUCTS["M0"], parts=4))
        # Of B stored [k, n] that is the better way by the cost model, too, the second kernel's time counted.
        whole = microseconds(gemm(False, (128, 64, 64), sizes=PRODUCTS["M0"]))
        self.assertLess(microseconds(gemm(False, sizes=PRODUCTS["M0"], parts=4)), whole)

    def test_order_of_the_cost_model(self):
        # Of plans more than 5 % apart by this model, loops alone: the cost model has them in the same order.
        together, pairs = 0, 0
        for sizes in [PRODUCTS["M0"], (1024, 8192, 4096)]:
            for transpose_b in [True, False]:
                times = [both for stages in (2, 3) for tile, threads in TILES
                         if (both := both_models(transpose_b, tile, threads, sizes, stages))]
                for (loops, whole), (other_loops, other_whole) in itertools.combinations(times, 2):
                    if max(loops, other_loops) >= 1.05 * min(loops, other_loops):
                        pairs += 1
                        together += (loops < other_loops) == (whole < other_whole)
                pick = min(times, key=lambda t: t[1])[0]
                print(f"{sizes}: the pick takes {pick / min(times)[0]:.2f} of the least")
                self.assertLessEqual(pick, 1.25 * min(times)[0])
        print(f"{together} of {pairs} pairs in order")
        self.assertGreater(pairs, 100)
        self.assertGreaterEqual(together, 0.85 * pairs)

    def test_tiles_that_the_cost_model_chooses(self):
        # Of a plain program: option tune = model, tiles whose loops take up to twice as long among them.
        for transpose_b, least in [(True, 0.91), (False, 0.80)]:
            text = gemm(transpose_b, ("BM", "BN", "BK"), sizes=PRODUCTS["M0"])
            domains = "param BM in {128, 64, 256}\nparam BN in {64, 128}\nparam BK in {32, 64}\n"
            self.holds(least, text.replace("program gemm\n", "program gemm\n" + domains, 1), ["--tune", "model"])

    def test_gemm_of_bytes(self):
        for types in [("i8", "i32", "i32"), ("e4m3fnuz", "f32", "f32")]:
            self.holds(0.95, gemm(True, (128, 128, 64), types=types))
            self.holds(0.95, gemm(False, (128, 128, 64), types=types))

    def test_attention(self):
        self.holds(0.78, attention(128, 64, 256))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
