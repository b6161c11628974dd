// Mistakes that show when the program is looked at as a whole, or when it is run.
#include <gtest/gtest.h>

#include <string>

#include "golden.h"

namespace tilegen::test {
namespace {

Failure parse_failure(const std::string& text) {
  const Context context = make_context();
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error);
  tl_program_release(program);
  return Failure(error);
}

Failure compile_failure(const std::string& text, const char* target_name,
                        const char* switched_off = nullptr) {
  const Context context = make_context();
  tl_program* program = nullptr;
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, nullptr), TL_OK);
  EXPECT_EQ(tl_target_parse(target_name, &target, nullptr), TL_OK);
  tl_options* options = nullptr;
  EXPECT_EQ(tl_options_create(&options, nullptr), TL_OK);
  if (switched_off) {
    EXPECT_EQ(tl_options_set_bool(options, switched_off, 0, nullptr), TL_OK);
  }
  EXPECT_NE(tl_compile(context.get(), program, target, options, &artifact, &error), TL_OK);
  tl_options_destroy(options);
  tl_program_release(program), tl_target_release(target), tl_artifact_release(artifact);
  return Failure(error);
}

std::string kernel(const std::string& body) {
  return "tl 1 program p\ndim n\ntensor A: f32[n, 32]\ntensor B: f32[n, 32]\nkernel k grid(b: n) {\n" + body +
         "}\n";
}

TEST(ProgramErrors, Text) {
  expect_golden("syntax_error.dynamic_extent",
                parse_failure(kernel("  parallel i in n { B[b, i] = 1.0 }\n")));
  expect_golden("syntax_error.dynamic_region",
                parse_failure(kernel("  copy A[b, 0 :+ n] -> B[b, 0 :+ 4]\n")));
  expect_golden("syntax_error.statement", parse_failure(kernel("  copy A[b, 0 :+ ] -> B\n")));
  expect_golden("unknown_name.buffer",
                parse_failure(kernel("  copy Z[b :+ 1, 0 :+ 32] -> B[b :+ 1, 0 :+ 32]\n")));
}

TEST(ProgramErrors, Reports) {
  expect_golden("dtype_mismatch.assertion", parse_failure(kernel("  assert b, \"rows\"\n")));
  expect_golden("syntax_error.message", parse_failure(kernel("  assert b < n, rows\n")));
  expect_golden("syntax_error.open_text", parse_failure(kernel("  print \"rows, b\n")));
  expect_golden("misplaced_statement.print_of_region",
                parse_failure(kernel("  parallel i in 4 {\n    print \"a\" of A[b :+ 1, 0 :+ 2]\n  }\n")));
}

std::string with_function(const std::string& texts) {
  return "tl 1 program p\ntensor A: f32[32]\nfn f(x: f32) -> f32\n  " + texts +
         "\n{ return x * 2 }\nkernel k grid(b: 1) {\n  parallel i in 32 { A[i] = f(A[i]) }\n}\n";
}

TEST(ProgramErrors, NativeText) {
  expect_golden("bad_native_text.directive",
                parse_failure(with_function("asm ptx \"add.f32 $0, $1, $1; } .entry more() {\"")));
  expect_golden("bad_native_text.memory",
                parse_failure(with_function("asm gcn \"global_load_dword $0, $1, off\"")));
  expect_golden("bad_native_text.parameter", parse_failure(with_function("asm ptx \"add.f32 $1, $1, $1;\"")));
  expect_golden(
      "bad_native_text.llvm",
      compile_failure(with_function("llvm \"define float @f(float %x) {\" \"ret float %y\" \"}\""), "host"));
  expect_golden("bad_native_text.assembler",
                compile_failure(with_function("asm gcn \"v_double_f32 $0, $1\""), "gfx942"));
  expect_golden("native_text_off.option",
                compile_failure(with_function("asm ptx \"add.f32 $0, $1, $1;\""), "sm_80", "native_text"));
}

// m8n8k4 of doubles, with this text and this layout of A.
std::string with_atom(const std::string& text, const std::string& layout, const std::string& threads = "32",
                      const std::string& meaning = "") {
  return "tl 1 program p\natom mul(a: f64[8, 4] at " + layout +
         ", b: f64[4, 8] at (k, j) -> j * 4 + k,\n  c: f64[8, 8] at (i, j) -> (i * 4 + j // 2) * 2 + j % "
         "2)\n  " +
         text + meaning + "\nkernel k grid(b: 1) threads " + threads +
         " {\n  alloc x: shared f64[16, 16]\n  alloc y: shared f64[16, 6]\n  alloc z: shared f64[6, 16]\n"
         "  alloc c: fragment f64[16, 16]\n  fill x, 0\n  fill y, 0\n  fill z, 0\n  fill c, 0\n"
         "  gemm x, x -> c {atom = mul}\n  gemm y, z -> c {atom = mul}\n}\n";
}

TEST(ProgramErrors, MatrixAtoms) {
  const std::string word = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
                    text = "asm ptx \"" + word + " {$0, $1}, {$2}, {$3}, {$4, $5};\"",
                    layout = "(i, k) -> i * 4 + k";
  expect_golden("schedule_illegal.atom_place", parse_failure(with_atom(text, "(i, k) -> i * 2 + k")));
  expect_golden(
      "bad_native_text.atom_registers",
      parse_failure(with_atom("asm ptx \"" + word + " {$0, $1}, {$2, $3}, {$4}, {$5, $6};\"", layout)));
  expect_golden(
      "bad_native_text.atom_shape",
      parse_failure(with_atom("asm ptx \"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {$0};\"", layout)));
  expect_golden(
      "bad_native_text.atom_warpgroup",
      parse_failure(with_atom("asm ptx \"wgmma.mma_async.sync.aligned.m64n8k4.f32 {$0};\"", layout)));
  expect_golden("bad_native_text.atom_llvm",
                parse_failure(with_atom("llvm \"define double @mul()\"", layout)));
  expect_golden("bad_native_text.atom_meaning",
                parse_failure(with_atom(text, layout, "32", "\n{ return max(c, a + b) }")));
  expect_golden("schedule_illegal.atom_extents", compile_failure(with_atom(text, layout), "sm_80"));
  expect_golden("native_text_off.atom", compile_failure(with_atom(text, layout), "sm_80", "native_text"));
}

// What a program says of itself is refused where it stands.
TEST(ProgramErrors, Annotations) {
  const std::string copy = "copy A[b :+ 1, 0 :+ 32] -> B[b :+ 1, 0 :+ 32]";
  expect_golden("duplicate_name.label",
                parse_failure(kernel("  label x: " + copy + "\n  label x: " + copy + "\n")));
  expect_golden("misplaced_statement.label", parse_failure(kernel("  label x: let y = 4\n")));
  expect_golden("unknown_name.annotation", parse_failure(kernel("  " + copy + " {vektor = 8}\n")));
  expect_golden("bad_attribute.annotation", parse_failure(kernel("  " + copy + " {engine = tma}\n")));
  expect_golden("out_of_scope.layout",
                parse_failure(kernel("  alloc t: shared f32[8, 4] {layout = (i, j) -> i * n + j}\n")));
  expect_golden(
      "schedule_illegal.annotation",
      compile_failure(kernel("  alloc t: shared f32[1, 32] {swizzle = 128}\n  copy A[b :+ 1, 0 :+ 32] -> t\n"
                             "  copy t -> B[b :+ 1, 0 :+ 32]\n"),
                      "sm_80"));
  expect_golden(
      "schedule_mismatch.annotation",
      compile_failure(
          kernel("  alloc t: shared f32[1, 32]\n  pipelined i in 0 .. 2 with {order = [x], stage = [0]} {\n"
                 "    copy A[b :+ 1, 0 :+ 32] -> t\n    copy t -> B[b :+ 1, 0 :+ 32]\n  }\n"),
          "sm_80"));
}

TEST(ProgramErrors, OldValues) {
  expect_golden("misplaced_statement.old_value", parse_failure(kernel("  let a = atomic_add(A[b, 0], 1)\n")));
  expect_golden("misplaced_statement.var_of_old",
                parse_failure(kernel("  parallel i in 4 {\n    var a = atomic_add(A[b, i], 1)\n  }\n")));
  expect_golden("dtype_mismatch.uniform",
                parse_failure(kernel("  parallel i in 4 {\n    A[b, i] = uniform(i)\n  }\n")));
}

TEST(ProgramErrors, Bits) {
  expect_golden("dtype_mismatch.bitcast",
                parse_failure(kernel("  parallel i in 4 {\n    A[b, i] = bitcast(f32, i)\n  }\n")));
  expect_golden("dtype_mismatch.bits_of_bool",
                parse_failure(kernel("  parallel i in 4 {\n    A[b, i] = bitcast(bool, 7u8)\n  }\n")));
  expect_golden("dtype_mismatch.view", parse_failure(kernel("  alloc t: shared f32[8, 4]\n"
                                                            "  view v = reinterpret(t, bool)\n")));
  expect_golden("dtype_mismatch.written_view",
                parse_failure(kernel("  alloc t: shared f32[8, 4]\n  view v = reinterpret(t, u16)\n"
                                     "  parallel i in 8 { v[i, i] = 1 }\n")));
  const std::string tiles = "  alloc t: shared f32[8, 4]\n  alloc o: fragment f32[8, 4]\n";
  expect_golden("misplaced_statement.atomic_fetch",
                parse_failure(kernel(tiles + "  alloc s: shared f32[8, 4]\n"
                                             "  atomic t -> s, o {kind = add, engine = tensor_copy}\n")));
  expect_golden("scope_not_allowed.atomic_fetch", parse_failure(kernel(tiles + "  atomic t -> o, t\n")));
  expect_golden("shape_mismatch.atomic_fetch",
                parse_failure(kernel(tiles + "  alloc s: shared f32[4, 8]\n  atomic t -> s, o\n")));
  expect_golden("dtype_mismatch.atomic_view",
                parse_failure(kernel("  alloc t: shared f16[8, 4]\n  view v = reinterpret(t, u32)\n"
                                     "  parallel i in 8 { atomic_add(v[i, 0], 1) }\n")));
  expect_golden("dtype_mismatch.atomic_of_another_type",
                parse_failure(kernel("  alloc t: shared i32[8, 4]\n  view v = reinterpret(t, u32)\n"
                                     "  parallel i in 8 { atomic_max(v[i, 0], 1) }\n")));
  expect_golden("shape_mismatch.view_width", parse_failure(kernel("  alloc t: shared f32[8, 3]\n"
                                                                  "  view v = reinterpret(t, u64)\n")));
  expect_golden(
      "dtype_mismatch.cast_mode",
      parse_failure(kernel("  parallel i in 4 { A[b, i] = cast(f32, cast(e4m3, B[b, i], up)) }\n")));
  expect_golden("syntax_error.cast_mode",
                parse_failure(kernel("  parallel i in 4 { A[b, i] = cast(f32, i, towards_zero) }\n")));
  expect_golden("dtype_mismatch.view_of_operation",
                parse_failure(kernel("  alloc t: shared u32[4]\n  view v = reinterpret(A, u32)\n  fill t, 0\n"
                                     "  atomic t -> v[b :+ 1, 0 :+ 4] {kind = or}\n")));
}

TEST(ProgramErrors, PackedTypes) {
  const auto packed = [](const std::string& tensors, const std::string& body) {
    return parse_failure("tl 1 program p\ndim n\ndim k divisible 64\n" + tensors +
                         "\nkernel main grid(b: n) {\n" + body + "}\n");
  };
  expect_golden("bad_shape.part_of_byte", packed("tensor W: u4[k, n]", ""));
  expect_golden(
      "dtype_mismatch.packed_operand",
      packed("tensor W: u4[n, k]",
             "  alloc w: shared u4[16, 64]\n  alloc x: shared f16[16, 64]\n  alloc c: fragment f32[16, 16]\n"
             "  gemm x, w -> c {transpose_b}\n"));
  expect_golden("misplaced_statement.part_of_byte",
                packed("tensor W: u4[n, k]", "  parallel j in 64 {\n    W[b, j + 1] = W[b, j]\n  }\n"));
  expect_golden("dtype_mismatch.packed_sum",
                packed("tensor W: u4[n, k] tensor Y: u4[n, k]",
                       "  parallel j in 64 {\n    Y[b, j] = W[b, j] + W[b, j]\n  }\n"));
}

// Of 128 threads in groups of 32 lanes.
Failure threads_failure(const std::string& body, const std::string& head = "  threads w, l in 4, 32 {\n") {
  return parse_failure(
      "tl 1 program p\ntensor X: f32[128] readonly\ntensor Y: f32[128]\nkernel k grid(b: 1) threads 128 {\n"
      "  alloc s: shared f32[128]\n" +
      head + body + "  }\n}\n");
}

TEST(ProgramErrors, Threads) {
  const std::string x = "    let x = X[w * 32 + l]\n";
  expect_golden("misplaced_statement.divergent_shuffle",
                threads_failure(x + "    if l < 3 {\n      Y[l] = shuffle_xor(x, 1)\n    }\n"));
  expect_golden("misplaced_statement.shuffle_of_values",
                threads_failure(x + "    if x > 0 {\n      Y[l] = shuffle(x, 1)\n    }\n"));
  expect_golden("misplaced_statement.shuffle_of_lanes",
                threads_failure(x + "    unroll r in 0 .. 2 {\n      if shuffle(x, l * r) > 0 {\n"
                                    "        Y[l] = shuffle(x, 1)\n      }\n    }\n"));
  expect_golden(
      "misplaced_statement.commit_of_votes",
      threads_failure("    copy_async X[l] -> s[l]\n    if any(l > w) {\n      commit_group\n    }\n"
                      "    wait_group 0\n"));
  expect_golden("misplaced_statement.divergent_barrier",
                threads_failure("    if l == 0 {\n      barrier\n    }\n"));
  expect_golden("misplaced_statement.barrier_of_part_of_a_warp",
                threads_failure("    if t < 48 {\n      barrier\n    }\n", "  threads t in 128 {\n"));
  expect_golden("misplaced_statement.barrier_in_loop",
                threads_failure("    serial i in 0 .. w {\n      barrier\n    }\n"));
  expect_golden("misplaced_statement.barrier_outside", parse_failure(kernel("  barrier\n")));
  expect_golden("misplaced_statement.shuffle_outside",
                parse_failure(kernel("  parallel i in 4 {\n    let x = shuffle(A[b, 0], 1)\n  }\n")));
  expect_golden("misplaced_statement.threads_in_pipeline",
                threads_failure("  }\n", "  pipelined i in 0 .. 4 {\n  threads t in 128 {\n"));
  expect_golden("misplaced_statement.thread_id_outside",
                parse_failure(kernel("  parallel i in 4 {\n    B[b, i] = cast(f32, lane_id())\n  }\n")));
  expect_golden("syntax_error.thread_id", threads_failure("    Y[thread_id(l)] = 1\n"));
  expect_golden("unknown_name.warp_id", threads_failure("    Y[warpid()] = 1\n"));
  expect_golden("misplaced_statement.block_id_outside",
                parse_failure("tl 1 program p\ntensor Y: f32[4]\nkernel k grid(b: block_id()) {\n}\n"));
  expect_golden(
      "bad_attribute.cluster_rank",
      parse_failure("tl 1 program p\ntensor Y: i64[4]\nkernel k grid(y: 2, x: 2) with {cluster = 2} "
                    "{\n  parallel i in 4 {\n    Y[i] = cluster_rank()\n  }\n}\n"));
  expect_golden("index_out_of_bounds.lane", threads_failure(x + "    Y[l] = shuffle(x, 32)\n"));
  expect_golden("index_out_of_bounds.lane_mask", threads_failure(x + "    Y[l] = shuffle_xor(x, -1)\n"));
  expect_golden("bad_shape.threads", threads_failure("", "  threads w, l in 3, 32 {\n"));
  expect_golden("bad_shape.threads_unknown", parse_failure(kernel("  threads w, l in 4, 32 {\n  }\n")));
  expect_golden("bad_shape.lanes",
                threads_failure("    Y[t] = shuffle(X[t], 1)\n", "  threads t in 128 {\n"));
  expect_golden("dtype_mismatch.shuffle", threads_failure(x + "    let y = shuffle(x > 0, 1)\n"));
  expect_golden("dtype_mismatch.lane", threads_failure(x + "    let y = shuffle(x, x)\n"));
  expect_golden("dtype_mismatch.vote", threads_failure(x + "    let y = any(x)\n"));
  expect_golden("dtype_mismatch.match", threads_failure(x + "    let y = match_any(x)\n"));
  expect_golden("dtype_mismatch.elect", threads_failure(x + "    let y = elect(x)\n"));
  expect_golden(
      "parallel_race.threads",
      threads_failure("    s[w * 32 + l] = X[w * 32 + l]\n    Y[w * 32 + l] = s[127 - w * 32 - l]\n"));
}

TEST(ProgramErrors, AsynchronousCopies) {
  const std::string copy = "    copy_async X[w * 32 + l] -> s[w * 32 + l]\n", commit = "    commit_group\n";
  const std::string read = "    Y[w * 32 + l] = s[127 - w * 32 - l]\n";
  expect_golden("misplaced_statement.copy_async_outside",
                parse_failure(kernel("  copy_async A[b, 0 :+ 4] -> B[b, 0 :+ 4]\n")));
  expect_golden("scope_not_allowed.copy_async", threads_failure("    copy_async s[l] -> s[l + 32]\n"));
  expect_golden("bad_shape.copy_async", threads_failure("    copy_async X[l * 3 :+ 3] -> s[l * 3 :+ 3]\n"));
  expect_golden("shape_mismatch.copy_async",
                threads_failure("    copy_async X[l * 4 :+ 4] -> s[l * 2 :+ 2]\n"));
  expect_golden("misplaced_statement.divergent_commit",
                threads_failure("    if w == 0 {\n  " + copy + "  " + commit + "    }\n"));
  expect_golden("misplaced_statement.nothing_awaits", threads_failure(copy + commit + read));
  expect_golden("bad_attribute.wait_group", threads_failure(copy + commit + "    wait_group 0 - 1\n"));
  expect_golden("misplaced_statement.group_in_pipeline",
                parse_failure(kernel("  pipelined i in 0 .. 4 {\n    commit_group\n  }\n")));
  expect_golden("bad_attribute.asynchronous_loop",
                parse_failure(kernel("  parallel i in 32 with {asynchronous} {\n    B[b, i] = A[b, i]\n  }\n"
                                     "  wait_group 0\n")));
  const auto unawaited = [&](const std::string& waits) {
    return compile_failure(
        "tl 1 program p\ntensor X: f32[128] readonly\ntensor Y: f32[128]\nkernel k grid(b: 1) threads 128 {\n"
        "  alloc s: shared f32[128]\n  threads w, l in 4, 32 {\n" +
            copy + waits + read + "    wait_group 0\n  }\n}\n",
        "sm_80");
  };
  expect_golden("misplaced_statement.unawaited_copy", unawaited(commit));
  expect_golden("misplaced_statement.wait_for_others", unawaited(commit + commit + "    wait_group 2\n"));
  expect_golden("misplaced_statement.uncommitted_copy", unawaited("    wait_group 0\n"));
  expect_golden("schedule_illegal.copy_of_no_whole_words",
                compile_failure(
                    "tl 1 program p\ntensor X: f16[17] readonly\ntensor Y: f16[128]\nkernel k grid(b: 1) "
                    "threads 128 {\n  alloc s: shared f16[256]\n  threads t in 128 {\n    copy_async X[t * 2 "
                    ":+ 2] -> s[t * 2 :+ 2]\n    commit_group\n    wait_group 0\n    Y[t] = s[t]\n  }\n}\n",
                    "sm_80"));
}

TEST(ProgramErrors, Jumps) {
  expect_golden(
      "misplaced_statement.break_of_pipeline",
      parse_failure(kernel("  pipelined i in 0 .. 4 {\n    if b < 2 {\n      break\n    }\n  }\n")));
  expect_golden("misplaced_statement.continue_nowhere", parse_failure(kernel("  continue\n")));
  expect_golden("misplaced_statement.return_in_parallel",
                parse_failure(kernel("  parallel i in 4 {\n    return\n  }\n")));
  expect_golden(
      "misplaced_statement.barrier_in_while",
      parse_failure("tl 1 program p tensor X: i32[64]\nkernel k grid (b: 1) threads 64 {\n  threads t in 64 "
                    "{\n    var s = X[t]\n    while s > 0 {\n      s -= 1\n      barrier\n    }\n  }\n}\n"));
  expect_golden(
      "misplaced_statement.unroll_while",
      parse_failure(kernel("  parallel i in 4 {\n    unroll t in 0 .. 4 while i < 2 {\n    }\n  }\n")));
  expect_golden(
      "misplaced_statement.behind_break",
      parse_failure(kernel("  serial i in 0 .. 4 {\n    break\n    fill A[b :+ 1, 0 :+ 2], 0\n  }\n")));
  expect_golden("dtype_mismatch.switch",
                parse_failure(kernel("  switch b < 2 {\n    case 1 {\n    }\n  }\n")));
  expect_golden("dtype_mismatch.case",
                parse_failure(kernel("  switch cast(i8, b) {\n    case 300 {\n    }\n  }\n")));
  expect_golden(
      "dtype_mismatch.type_of_a_case",
      parse_failure(kernel("  switch cast(u64, b) {\n    case 5u32, 18446744073709551615 {\n    }\n  }\n")));
  expect_golden("unknown_name.function_of_literals",
                parse_failure(kernel("  parallel i in 4 {\n    B[b, i] = maxx(1.0, inf)\n  }\n")));
  expect_golden("syntax_error.case", parse_failure(kernel("  switch b {\n    fill A, 0\n  }\n")));
  expect_golden("dtype_mismatch.loop_condition", parse_failure(kernel("  while b {\n  }\n")));
}

TEST(ProgramErrors, Meaning) {
  expect_golden("shape_mismatch.copy",
                parse_failure(kernel("  copy A[b :+ 1, 0 :+ 32] -> B[b :+ 1, 0 :+ 16]\n")));
  expect_golden("shape_mismatch.copy_from_a_place",
                parse_failure(kernel("  alloc t: shared f32[4, 2, 8]\n  copy A[b, 0] -> t\n")));
  expect_golden("shape_mismatch.copy_of_a_range",
                parse_failure(kernel("  alloc t: shared f32[4, 8]\n  copy A[b, 0 :+ 8] -> t\n")));
  expect_golden("shape_mismatch.view", parse_failure(kernel("  alloc t: shared f32[8, 4]\n"
                                                            "  view v = reshape(t, [3, 11])\n")));
  expect_golden("index_out_of_bounds.view",
                parse_failure(kernel("  alloc t: shared f32[8, 4]\n  view v = reshape(t, [2, 16])\n"
                                     "  fill t, 0.0f32\n  parallel i in 2 {\n    v[i, 16] = 1.0f32\n  }\n")));
  expect_golden("shape_mismatch.gemm",
                parse_failure(kernel("  alloc x: shared f32[16, 32]\n  alloc y: shared f32[16, 32]\n"
                                     "  alloc z: fragment f32[16, 16]\n  fill x, 0.0f32\n  fill y, 0.0f32\n"
                                     "  gemm x, y -> z {clear}\n")));
  expect_golden("index_out_of_bounds.tile",
                parse_failure(kernel("  alloc t: shared f32[8]\n  fill t, 0.0f32\n  parallel i in 8 {\n"
                                     "    A[b, i] = t[i + 1]\n  }\n")));
  expect_golden("parallel_race.store",
                parse_failure(kernel("  parallel i in 32 {\n    A[b, 0] = cast(f32, i)\n  }\n")));
  expect_golden("uninitialised_read.tile",
                parse_failure(kernel("  alloc t: fragment f32[32]\n  copy t -> A[b :+ 1, 0 :+ 32]\n")));
  const auto second_workspace = [](const std::string& marks) {
    return "tl 1 program p\ndim n\ntensor A: f32[n, 32]\ntensor P: f32[n, 32]" + marks +
           "\nkernel k grid(b: n) {\n  copy P[b :+ 1, 0 :+ 32] -> A[b :+ 1, 0 :+ 32]\n}\nkernel l grid(b: n) "
           "{\n"
           "  copy A[b :+ 1, 0 :+ 32] -> P[b :+ 1, 0 :+ 32]\n}\n";
  };
  expect_golden("uninitialised_read.workspace", parse_failure(second_workspace(" workspace")));
  expect_golden("scope_not_allowed.workspace_strides",
                parse_failure(second_workspace(" strides [64, 1] workspace")));
}

TEST(ProgramErrors, ViewsOfTensorsAndOrders) {
  expect_golden("shape_mismatch.tensor_view",
                parse_failure(kernel("  view v = reshape(A, [n // 2, 2, 32])\n")));
  expect_golden("scope_not_allowed.tensor_view",
                parse_failure(kernel("  view v = A[cast(i64, B[0, 0]) :+ 4, 0 :+ 32]\n")));
  expect_golden("index_out_of_bounds.tensor_view", parse_failure(kernel("  view v = A[0 :+ n, 8 :+ 32]\n")));
  const auto ordered = [](const std::string& element, const std::string& order) {
    return "parallel i in 1 { atomic_add(" + element + ", 1) {order = " + order + "} }\n";
  };
  expect_golden("bad_attribute.order", parse_failure(kernel(ordered("A[b, i]", "releases"))));
  expect_golden("misplaced_statement.shared_order",
                parse_failure(kernel("  alloc t: shared f32[1]\n  fill t, 0\n  pipelined k in 0 .. 4 {\n" +
                                     ordered("t[i]", "release") + "  }\n")));
  expect_golden("misplaced_statement.order", parse_failure(kernel("  pipelined k in 0 .. 4 {\n" +
                                                                  ordered("A[b, i]", "acquire") + "  }\n")));
}

TEST(ProgramErrors, LoopsThatAskForTooMuch) {
  const auto pipelined = [](const std::string& stages) {
    return parse_failure(
        kernel("  alloc t: shared f32[1, 32]\n  pipelined i in 0 .. 4 stages " + stages +
               " {\n    copy A[b :+ 1, 0 :+ 32] -> t\n    copy t -> B[b :+ 1, 0 :+ 32]\n  }\n"));
  };
  expect_golden("bad_attribute.text_stages", pipelined("65"));
  expect_golden("bad_attribute.most_stages", pipelined("9223372036854775807"));
  EXPECT_FALSE(pipelined("64"));
  expect_golden("limit_unroll.vectorized",
                parse_failure(kernel(
                    "  alloc t: local f32[1]\n  unroll i in 0 .. 4096 {\n    vectorized j in 0 .. 8 {\n"
                    "      t[0] = 1.0f32\n    }\n  }\n")));
}

// Found while the program runs, wherever it is by then.
TEST(ProgramErrors, RunsThatDoNotEnd) {
  const std::string text = "tl 1 program p\ndim n\nkernel k grid(b: n) {\n  serial s in 0 .. n {\n  }\n}\n";
  const Context context = make_context();
  tl_program* parsed = nullptr;
  ASSERT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &parsed, nullptr), TL_OK);
  const Program program(parsed);
  const auto run = [&](int64_t n, int64_t timeout_ms) {
    const tl_arg arg{TL_ARG_I64, 0, static_cast<uint64_t>(n)};
    tl_launch how{};
    how.struct_size = sizeof how;
    how.timeout_ms = timeout_ms;
    tl_error* error = nullptr;
    tl_interpret_launch(program.get(), &how, &arg, 1, &error);
    return Failure(error);
  };
  expect_golden("cancelled_by_caller.interpreted_too_long", run(int64_t{1} << 30, 5));
  expect_golden("launch_limit.interpreted_grid", run(int64_t{1} << 40, 0));
  expect_golden("unknown_option.launch_timeout", run(1, -1));
}

TEST(ProgramErrors, BuiltOutOfScope) {
  const Context context = make_context();
  const Builder builder = make_builder(context, "p");
  tl_builder* b = builder.get();
  tl_builder_set_location(b, "user.c", 42, 7);
  const tl_expr shape[] = {tl_index(b, 64)}, grid[] = {tl_index(b, 1)};
  const tl_buffer A = tl_tensor(b, "A", TL_I64, 1, shape, nullptr, 0);
  tl_expr block, i, j;
  const tl_scope k = tl_begin_kernel(b, "k", 1, grid, 0, nullptr, &block);
  const tl_scope loop = tl_begin_loop(b, TL_LOOP_SERIAL, tl_index(b, 0), tl_index(b, 4), 0, "i", &i);
  tl_end(b, loop);
  const int64_t extent = 64;
  const tl_scope p = tl_begin_parallel(b, 1, &extent, nullptr, &j);
  tl_store(b, A, 1, &j, i);  // i has no value here
  tl_end(b, p);
  tl_end(b, k);
  Failure failure;
  finish(builder, nullptr, &failure);
  expect_golden("out_of_scope.variable", failure);
}

}  // namespace
}  // namespace tilegen::test
