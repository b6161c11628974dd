#include "runtime/workspace.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

ir::Program parse(const std::string& declarations) {
  auto program = ir::parse_program("tl 1 program p\n" + declarations + "kernel k grid(block: 1) {\n}\n",
                                   "p.tl", Limits());
  EXPECT_TRUE(program) << (program ? "" : program.error().to_text());
  return program ? std::move(*program) : ir::Program();
}

using Slots = std::vector<uint64_t>;

const std::string kThree =
    "dim m\ndim n\ntensor A: f32[m]\ntensor P: f32[m, n] workspace\nscalar s: i32\ntensor R: f64[n // 2 + 1] "
    "workspace\n"
    "tensor T: u8[m - n, 4] workspace\n";

TEST(Workspace, EachBeginsAtItsAlignment) {
  const ir::Program p = parse(kThree);
  const Workspace w(p);
  Slots slots = {70, 3, 4096, 0, 9, 0, 0};
  const auto bytes = w.lay_out(slots);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, 1024 + 256 + 512);  // 70 * 3 * 4, 2 * 8, 67 * 4
  EXPECT_EQ(slots, (Slots{70, 3, 4096, 0, 9, 1024, 1280}));
  w.place(1 << 20, slots);
  EXPECT_EQ(slots, (Slots{70, 3, 4096, 1 << 20, 9, (1 << 20) + 1024, (1 << 20) + 1280}));
  EXPECT_TRUE(Workspace(parse("dim m\ntensor A: f32[m]\n")).empty());
}

TEST(Workspace, ShapesThatNoMemoryHasAreRefused) {
  const ir::Program p = parse(kThree);
  const Workspace w(p);
  const auto refusal = [&](uint64_t m, uint64_t n) {
    Slots slots = {m, n, 0, 0, 0, 0, 0};
    const auto bytes = w.lay_out(slots);
    return bytes ? "accepted" : bytes.error().to_text();
  };
  EXPECT_EQ(refusal(3, 3), "accepted");  // T has no elements
  EXPECT_NE(refusal(3, 4).find("workspace 'T' would be [-1, 4]"), std::string::npos) << refusal(3, 4);
  EXPECT_NE(refusal(uint64_t{1} << 40, uint64_t{1} << 40).find("workspace 'P' would be ["),
            std::string::npos);
  EXPECT_NE(refusal(uint64_t{1} << 61, 1).find("workspace 'P' would be ["), std::string::npos);
}

TEST(Workspace, HostMemoryLastsAsLongAsTheRun) {
  const ir::Program p = parse(kThree);
  const Workspace w(p);
  Slots slots = {70, 3, 0, 0, 0, 0, 0};
  bool ran = false;
  const Checked done = w.in_host_memory(slots, true, [&]() -> Checked {
    ran = true;
    for (size_t slot : {3, 5, 6}) EXPECT_EQ(slots[slot] % Workspace::kAlignment, 0u);
    const auto* bytes = reinterpret_cast<const uint8_t*>(slots[6]);
    for (int i = 0; i < 67 * 4; ++i) EXPECT_EQ(bytes[i], 0xff);
    return Unit{};
  });
  EXPECT_TRUE(done && ran);
  slots = {int64_t{1} << 50, 3, 0, 0, 0, 0, 0};
  const Checked none = w.in_host_memory(slots, false, [&]() -> Checked { return Unit{}; });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().diagnostics[0].code, DiagCode::limit_memory);
}

}  // namespace
}  // namespace tilegen::runtime
