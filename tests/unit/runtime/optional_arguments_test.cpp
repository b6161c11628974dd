// Launch arguments of optional tensors: through the binder, and through the plan where that settles them.
#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"
#include "runtime/argument_plan.h"

namespace tilegen::runtime {
namespace {

using Kind = Argument::Kind;
using Slots = std::vector<uint64_t>;

alignas(64) char memory[64];
const uint64_t kAt = reinterpret_cast<uint64_t>(memory);

ir::Program parse(const std::string& declarations, const std::string& body) {
  auto p = ir::parse_program("tl 1 program p\n" + declarations + "kernel k grid(block: 1) {\n" + body + "}\n",
                             "p.tl", Limits());
  EXPECT_TRUE(p) << (p ? "" : p.error().to_text());
  return p ? std::move(*p) : ir::Program();
}

Argument pointer(const void* at = memory) {
  Argument a;
  a.kind = Kind::pointer;
  a.bits = reinterpret_cast<uint64_t>(at);
  return a;
}
Argument integer(int64_t v) {
  Argument a;
  a.kind = Kind::integer;
  a.bits = static_cast<uint64_t>(v);
  return a;
}
// Of f32 with one extent, and a stride where it is not 0.
Argument tensor(const int64_t& extent, const void* at = memory, const int64_t* stride = nullptr) {
  Argument a = pointer(at);
  a.kind = Kind::tensor;
  a.type = ir::DType::f32;
  a.shape = {&extent, 1};
  if (stride) a.strides = {stride, 1};
  return a;
}

// What the plan settles it settles as the binder does.
Slots bind(const ir::Program& p, const std::vector<Argument>& arguments) {
  const auto slots = bind_arguments(p, arguments);
  EXPECT_TRUE(slots) << (slots ? "" : slots.error().to_text());
  Slots planned(p.params.size(), ~uint64_t{0});
  EXPECT_TRUE(ArgumentPlan(p).bind(arguments, {}, planned));
  if (slots) {
    EXPECT_EQ(planned, *slots);
  }
  return slots ? *slots : Slots();
}

void expect_refusal(const ir::Program& p, const std::vector<Argument>& arguments, const std::string& part) {
  Slots planned(p.params.size());
  EXPECT_FALSE(ArgumentPlan(p).bind(arguments, {}, planned));
  const auto slots = bind_arguments(p, arguments);
  ASSERT_FALSE(slots);
  EXPECT_NE(slots.error().to_text().find(part), std::string::npos) << slots.error().to_text();
}

// Their presence is a slot behind them that no argument gives; a null address tells nothing of dimensions.
TEST(OptionalArguments, NullAndPresence) {
  static constexpr int64_t kThree = 3, kFour = 4, kNine = 9, kTwo = 2;
  const std::string body = "parallel i in 4 { if present(X) { B[i] = X[i] } else { B[i] = 0.0 } }\n";
  const ir::Program p = parse("dim m\ntensor X: f32[m] optional\ntensor B: f32[m]\n", body);
  ASSERT_EQ(p.params.size(), 4u);
  EXPECT_EQ(bind(p, {integer(3), pointer(), pointer()}), (Slots{3, kAt, 1, kAt}));
  EXPECT_EQ(bind(p, {integer(3), pointer(nullptr), pointer()}), (Slots{3, 0, 0, kAt}));
  EXPECT_EQ(bind(p, {pointer(nullptr), tensor(kThree)}), (Slots{3, 0, 0, kAt}));
  EXPECT_EQ(bind(p, {tensor(kThree), tensor(kThree)}), (Slots{3, kAt, 1, kAt}));
  EXPECT_EQ(bind(p, {tensor(kThree, nullptr), pointer()}), (Slots{3, 0, 0, kAt}));
  EXPECT_EQ(bind(p, {integer(0), pointer(nullptr), pointer(nullptr)}), (Slots{0, 0, 0, 0}));
  expect_refusal(p, {tensor(kFour), tensor(kThree)}, "extent 0 of tensor");
  expect_refusal(p, {integer(3), pointer(), pointer(nullptr)}, "the address of tensor 'B' is null");
  expect_refusal(p, {integer(3), pointer(memory + 1), pointer()}, "not a multiple of 4 bytes");
  expect_refusal(p, {integer(3), integer(1), pointer(), pointer()}, "expected 3 arguments (m, X, B)");
  // A dimension that nothing else has is given.
  const ir::Program own = parse("dim m\ntensor X: f32[m] strides [2] optional\ntensor B: f32[4]\n", body);
  expect_refusal(own, {pointer(nullptr), pointer()}, "dimension 'm' cannot be found");
  EXPECT_EQ(bind(own, {integer(9), pointer(nullptr), pointer()}), (Slots{9, 0, 0, kAt}));
  EXPECT_EQ(bind(own, {tensor(kNine, memory, &kTwo), pointer()}), (Slots{9, kAt, 1, kAt}));
}

}  // namespace
}  // namespace tilegen::runtime
