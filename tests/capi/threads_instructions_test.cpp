// Blocks of threads: the instructions that their statements are.
#include "threads_scene.h"

namespace tilegen::test {
namespace {

std::string code_of(const Context& context, const Program& program, const char* name) {
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_options* options = nullptr;
  EXPECT_EQ(tl_options_create(&options, nullptr), TL_OK);
  EXPECT_EQ(tl_options_set_bool(options, "keep_assembly", 1, nullptr), TL_OK);
  EXPECT_EQ(tl_target_parse(name, &target, nullptr), TL_OK);
  EXPECT_EQ(tl_compile(context.get(), program.get(), target, options, &artifact, nullptr), TL_OK);
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_EQ(tl_artifact_section(artifact, TL_SECTION_ASSEMBLY, &data, &size, nullptr), TL_OK);
  const std::string text(data, size);
  tl_target_release(target), tl_artifact_release(artifact), tl_options_destroy(options);
  return text;
}
std::string ptx_of(const Context& context, const Program& program) {
  return code_of(context, program, "sm_80");
}
int count_of(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// Two warps of the four wait for each other, and the others for nobody.
TEST(Threads, BarriersOfSomeWarps) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ntensor X: i32[128] readonly\ntensor Y: i32[128]\nkernel k grid(b: 1) threads 128 {\n"
      "  alloc s: shared i32[64]\n  threads w, l in 4, 32 {\n    var r = X[w * 32 + l]\n    if w < 2 {\n"
      "      s[w * 32 + l] = r\n      barrier\n      r = s[63 - w * 32 - l]\n    }\n"
      "    Y[w * 32 + l] = r\n  }\n}\n");
  const std::string ptx = ptx_of(context, program);
  EXPECT_EQ(ptx.find("bar.sync \t0"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("bar.sync 1, 64"), std::string::npos) << ptx;
}

// Copies of the widest instruction, in the groups that the text has.
TEST(Threads, GroupsAreInstructions) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ntensor X: f16[2, 1024] readonly\ntensor Y: f16[128]\nkernel k grid(b: 1) threads 128 "
      "{\n"
      "  alloc s: shared f16[2, 1024]\n  threads w, l in 4, 32 {\n    unroll r in 0 .. 2 {\n"
      "      copy_async X[r, w * 256 + l * 8 :+ 8] -> s[r, w * 256 + l * 8 :+ 8]\n      commit_group\n    }\n"
      "    wait_group 1\n    let a = s[0, 127 - w * 32 - l]\n    wait_group 0\n"
      "    Y[w * 32 + l] = a + s[1, w * 32 + l]\n  }\n}\n");
  const std::string all = ptx_of(context, program),
                    ptx = all.substr(0, all.find(".entry", all.find(".entry") + 1));
  EXPECT_EQ(count_of(ptx, "cp.async.cg.shared.global"), 2) << ptx;
  EXPECT_EQ(count_of(ptx, "cp.async.commit_group"), 2) << ptx;
  EXPECT_EQ(count_of(ptx, "cp.async.wait_group"), 2) << ptx;
}

// Each side of a ring waits for its barriers, and nobody for the block.
TEST(Threads, TransactionBarriersAreInstructions) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ndim n\ntensor X: i32[n] readonly\ntensor Y: i32[64]\nkernel k grid(b: 1) threads 128 "
      "{\n"
      "  alloc ring: shared i32[3, 64]\n  alloc full: shared u64[3] {arrivals = 64}\n"
      "  alloc empty: shared u64[3] {arrivals = 64}\n  threads w, l in 4, 32 {\n    var r = 0i32\n"
      "    serial k in 0 .. n {\n      if w < 2 {\n        mbarrier_wait empty[k % 3], (k // 3 + 1) % 2\n"
      "        ring[k % 3, w * 32 + l] = X[k]\n        mbarrier_arrive full[k % 3]\n      } else {\n"
      "        mbarrier_wait full[k % 3], k // 3 % 2\n        r += ring[k % 3, 127 - w * 32 - l]\n"
      "        mbarrier_arrive empty[k % 3]\n      }\n    }\n"
      "    if w >= 2 { Y[w * 32 + l - 64] = r }\n  }\n}\n");
  for (const auto& [target, wait] : {std::pair("sm_80", "test_wait"), {"sm_90a", "try_wait"}}) {
    const std::string all = code_of(context, program, target),
                      ptx = all.substr(0, all.find(".entry", all.find(".entry") + 1));
    EXPECT_EQ(count_of(ptx, "mbarrier.init"), 6) << ptx;
    EXPECT_EQ(count_of(ptx, std::string("mbarrier.") + wait + ".parity"), 2) << ptx;
    EXPECT_EQ(count_of(ptx, "mbarrier.arrive"), 2) << ptx;
    EXPECT_EQ(count_of(ptx, "bar.sync"), 1) << ptx;  // behind the barriers' first state
  }
}

// One lane of each warp arrives, behind the others.
TEST(Threads, ElectedLanesMeetTheirWarp) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ndim n\ntensor X: i32[n] readonly\ntensor Y: i32[64]\nkernel k grid(b: 1) threads 128 "
      "{\n  alloc s: shared i32[64]\n  alloc full: shared u64[1] {arrivals = 2}\n"
      "  threads w, l in 4, 32 {\n    var r = 0i32\n    if w < 2 {\n      s[w * 32 + l] = X[w * 32 + l]\n"
      "      if l == 0 { mbarrier_arrive full[0] }\n    } else {\n      mbarrier_wait full[0], 0\n"
      "      r = s[127 - w * 32 - l]\n    }\n    if w >= 2 { Y[w * 32 + l - 64] = r }\n  }\n}\n");
  for (const char* target : {"sm_80", "sm_90a"}) {
    const std::string all = code_of(context, program, target),
                      ptx = all.substr(0, all.find(".entry", all.find(".entry") + 1));
    const size_t meets = ptx.find("bar.warp.sync"), arrives = ptx.find("mbarrier.arrive");
    EXPECT_LT(ptx.find("st.shared"), meets) << ptx;
    EXPECT_LT(meets, arrives) << ptx;
    EXPECT_EQ(count_of(ptx, "mbarrier.arrive"), 1) << ptx;
    EXPECT_EQ(count_of(ptx, "elect.sync"), target[3] == '9' ? 1 : 0) << ptx;  // sm_80 has none
  }
}

// A vote is an instruction for the warp, of groups of any size; what is like one stays as it is.
TEST(Threads, VotesAreInstructions) {
  const Context context = make_context();
  const auto code = [&](int lanes, const std::string& body, const char* target) {
    const std::string groups = std::to_string(128 / lanes), n = std::to_string(lanes);
    return code_of(
        context,
        parsed(context,
               "tl 1 program p\ntensor X: i32[128] readonly\ntensor Y: u32[128]\n"
               "kernel k grid(b: 1) threads 128 {\n  threads w, l in " +
                   groups + ", " + n + " {\n    let x = X[w * " + n + " + l]\n    " + body + "\n  }\n}\n"),
        target);
  };
  for (const int lanes : {2, 8, 32}) {
    const std::string to = "Y[w * " + std::to_string(lanes) + " + l] = ";
    for (const std::string value :
         {"ballot(x > 3)", "select(any(x > 3), 1, 2)", "select(all(x > 3), 1, 2)"}) {
      const std::string ptx = code(lanes, to + value, "sm_80"), gcn = code(lanes, to + value, "gfx942");
      const bool any = value.front() == 's' && lanes == 32;
      EXPECT_EQ(count_of(ptx, any ? "vote.sync.any.pred" : "vote.sync.ballot.b32"), 1) << ptx;
      EXPECT_EQ(count_of(ptx, "vote.sync"), 1) << ptx;
      EXPECT_EQ(count_of(ptx, "shfl.sync"), 0) << ptx;
      EXPECT_EQ(count_of(gcn, "ds_bpermute"), 0) << gcn;
    }
  }
  for (const int lanes : {2, 32}) {
    const std::string of = "Y[w * " + std::to_string(lanes) + " + l] = match_any(x)";
    const std::string ptx = code(lanes, of, "sm_80"), gcn = code(lanes, of, "gfx942");
    EXPECT_EQ(count_of(ptx, "match.any.sync.b32"), 1) << ptx;
    EXPECT_EQ(count_of(ptx, "shfl.sync"), 0) << ptx;
    EXPECT_EQ(count_of(gcn, "ds_bpermute"), 0) << gcn;
  }
  const std::string sum =
      "var s = SEED\n    unroll d in 0 .. 5 { s = s | shuffle_xor(s, 1 << d) }\n"
      "    Y[w * 32 + l] = s";
  const auto halves = [&](const std::string& seed, const char* target) {
    return code(32, std::string(sum).replace(sum.find("SEED"), 4, seed), target);
  };
  for (const std::string seed : {"select(x > 3, 1u32 << cast(u32, l), 0u32)", "select(x > 3, 12u32, 0u32)"}) {
    EXPECT_EQ(count_of(halves(seed, "sm_80"), "shfl.sync"), 0) << seed;
    EXPECT_EQ(count_of(halves(seed, "gfx942"), "ds_bpermute"), 0) << seed;
  }
  for (const std::string seed : {"cast(u32, x)", "select(x > 3, 1u32 << cast(u32, l ^ 1), 0u32)",
                                 "select(x > 3, 1u32 << cast(u32, l), 1u32)"}) {
    EXPECT_EQ(count_of(halves(seed, "sm_80"), "shfl.sync"), 5) << seed;
    EXPECT_EQ(count_of(halves(seed, "gfx942"), "ds_bpermute"), 5) << seed;
  }
}

// Lanes hand values over in registers: no shared memory, no barrier, one instruction a word.
TEST(Threads, ShufflesAreInstructions) {
  const Context context = make_context();
  for (const auto& [type, words] : {std::pair("f32", 1), {"f64", 2}, {"f16", 1}, {"u64", 2}}) {
    const Program program = parsed(
        context,
        std::string("tl 1 program p\ntensor X: ") + type + "[128] readonly\ntensor Y: " + type +
            "[128]\nkernel k grid(b: 1) threads 128 {\n  threads w, l in 4, 32 {\n"
            "    let x = X[w * 32 + l]\n    Y[w * 32 + l] = shuffle_xor(x, 3) + shuffle_up(x, 1)\n  }\n}\n");
    tl_target* target = nullptr;
    tl_artifact* artifact = nullptr;
    tl_error* error = nullptr;
    ASSERT_EQ(tl_target_parse("sm_80", &target, nullptr), TL_OK);
    ASSERT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, &error), TL_OK)
        << tl_error_message(error);
    const char* data = nullptr;
    size_t size = 0;
    ASSERT_EQ(tl_artifact_section(artifact, TL_SECTION_PTX, &data, &size, nullptr), TL_OK);
    const std::string ptx(data, size);
    int shuffles = 0;
    for (size_t at = ptx.find("shfl.sync"); at != std::string::npos; at = ptx.find("shfl.sync", at + 1))
      ++shuffles;
    EXPECT_EQ(shuffles, 2 * words) << type << "\n" << ptx;
    EXPECT_EQ(ptx.find("bar.sync"), std::string::npos) << type;
    EXPECT_EQ(ptx.find("st.shared"), std::string::npos) << type;
    tl_artifact_release(artifact), tl_target_release(target);
  }
}

}  // namespace
}  // namespace tilegen::test
