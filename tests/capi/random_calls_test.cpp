// Random sequences of builder calls: whatever is called with whatever, there is an answer and no crash, and
// what is accepted reads back from its own text.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "scope.h"

namespace tilegen::test {
namespace {

constexpr int kSequences = 4000, kCalls = 60;

class Player {
 public:
  Player(const Context& context, uint32_t seed)
      : random_(seed), builder_(make_builder(context)), b_(builder_.get()) {
    for (tl_dtype t : {TL_F32, TL_F16, TL_I64, TL_BOOL}) keep(literal(t));
    keep(tl_dim(b_, "n"));
    const tl_expr shape[] = {tl_index(b_, 64), exprs_.back()};
    buffers_.push_back(tl_tensor(b_, "A", TL_F32, 2, shape, nullptr, 0));
    keep(tl_index(b_, 0));
    keep(tl_index(b_, 1));
  }

  void play() {
    const int length = pick(kCalls);
    for (int i = 0; i < length && tl_builder_status(b_) == TL_OK; ++i) call();
    while (!scopes_.empty()) {
      tl_end(b_, scopes_.back());
      scopes_.pop_back();
    }
  }
  const Builder& builder() const { return builder_; }

 private:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool rarely() { return pick(400) == 0; }
  tl_expr literal(tl_dtype t) {
    return t == TL_F32 || t == TL_F16 ? tl_const_f64(b_, t, pick(5)) : tl_const_i64(b_, t, pick(2));
  }
  void keep(tl_expr e) {
    if (e.bits) exprs_.push_back(e);
  }
  tl_expr expr() {
    return rarely() ? tl_expr{std::uniform_int_distribution<uint64_t>()(random_)}
                    : exprs_[pick(static_cast<int>(exprs_.size()))];
  }
  // Of one type, so that most calls get past the first check.
  tl_expr expr_of(tl_dtype t) {
    for (int tries = 0; tries < 20; ++tries) {
      const tl_expr e = exprs_[pick(static_cast<int>(exprs_.size()))];
      if (tl_expr_dtype(b_, e) == t) return e;
    }
    return literal(t);
  }
  tl_buffer buffer() {
    return rarely() ? tl_buffer{exprs_[0].bits} : buffers_[pick(static_cast<int>(buffers_.size()))];
  }
  uint32_t small() { return rarely() ? 0xfffffff0u + pick(16) : static_cast<uint32_t>(pick(4)); }
  int64_t extent() { return rarely() ? int64_t{1} << pick(63) : int64_t{1} << pick(6); }

  void open(tl_scope s) {
    if (s.bits) scopes_.push_back(s);
  }
  void begin() {
    const tl_expr lo = expr_of(TL_I64), hi = expr_of(TL_I64);
    tl_expr out[3] = {};
    const std::string name = "v" + std::to_string(pick(30));
    if (scopes_.empty()) {
      const tl_expr grid[] = {tl_index(b_, pick(4)), exprs_[4]};
      open(tl_begin_kernel(b_, ("k" + name).c_str(), 1 + pick(2), grid, pick(3) * 64, nullptr, out));
    } else if (pick(3) == 0) {
      open(tl_begin_if(b_, expr_of(TL_BOOL)));
    } else if (pick(2) == 0) {
      const int64_t extents[] = {extent(), extent()};
      open(tl_begin_parallel(b_, 1 + pick(2), extents, nullptr, out));
    } else {
      open(tl_begin_loop(b_, rarely() ? small() : static_cast<uint32_t>(TL_LOOP_SERIAL), lo, hi, rarely() ? pick(9) : 0,
                         name.c_str(), out));
    }
    for (tl_expr e : out) keep(e);
  }
  void statement() {
    if (scopes_.empty()) return begin();
    const tl_expr at[4] = {expr_of(TL_I64), expr_of(TL_I64)};  // as long as any rank that is read
    const int64_t extents[] = {extent(), extent()};
    switch (pick(6)) {
      case 0:
        if (scopes_.size() == 1 || rarely()) {
          const tl_buffer t =
              tl_alloc(b_, ("t" + std::to_string(pick(100))).c_str(), 2 + pick(3), TL_F32, 2, extents);
          if (t.bits) buffers_.push_back(t);
        }
        break;
      case 1:
        regions_.push_back(tl_region_of(b_, buffer(), 2, at, extents));
        break;
      case 2:
        if (!regions_.empty() && scopes_.size() == 1)
          tl_fill(b_, regions_[pick(static_cast<int>(regions_.size()))], expr_of(TL_F32));
        break;
      case 3:
        if (!regions_.empty() && scopes_.size() == 1)
          tl_copy(b_, regions_[pick(static_cast<int>(regions_.size()))],
                  regions_[pick(static_cast<int>(regions_.size()))]);
        break;
      case 4:
        tl_store(b_, buffer(), rarely() ? small() : 2, at, expr_of(TL_F32));
        break;
      default:
        keep(tl_load(b_, buffer(), 2, at));
    }
  }
  void call() {
    const tl_dtype type = pick(2) ? TL_I64 : TL_F32;
    switch (pick(8)) {
      case 0:
        keep(tl_binary(b_, rarely() ? small() : TL_ADD + pick(3), expr_of(type), expr_of(type)));
        break;
      case 1:
        keep(tl_binary(b_, TL_LT + pick(4), expr_of(type), expr_of(type)));
        break;
      case 2:
        keep(tl_unary(b_, pick(2) ? TL_NEG : TL_ABS, expr_of(type)));
        break;
      case 3:
        keep(tl_select(b_, expr_of(TL_BOOL), expr_of(type), expr_of(type)));
        break;
      case 4:
        keep(tl_cast(b_, rarely() ? small() : 1 + pick(9), expr()));
        break;
      case 5:
        begin();
        break;
      case 6:
        if (!scopes_.empty() && (scopes_.size() > 1 || pick(8) == 0)) {
          tl_end(b_, rarely() ? scopes_[0] : scopes_.back());
          scopes_.pop_back();
          break;
        }
        [[fallthrough]];
      default:
        statement();
    }
  }

  std::mt19937 random_;
  Builder builder_;
  tl_builder* b_;
  std::vector<tl_expr> exprs_;
  std::vector<tl_buffer> buffers_;
  std::vector<tl_region> regions_;
  std::vector<tl_scope> scopes_;
};

TEST(RandomCalls, EverySequenceHasAnAnswer) {
  const Context context = make_context();
  int accepted = 0, refused = 0;
  for (uint32_t seed = 0; seed < kSequences; ++seed) {
    SCOPED_TRACE(seed);
    Player player(context, seed);
    player.play();
    Program program;
    Failure failure;
    if (finish(player.builder(), &program, &failure) != TL_OK) {
      ++refused;
      ASSERT_GE(tl_error_count(failure.get()), 1u);
      const tl_diagnostic d = first(failure);
      ASSERT_STRNE(d.code, "internal_error") << d.message;
      ASSERT_STRNE(d.hint, "") << d.message;
      continue;
    }
    ++accepted;
    tl_blob* text = nullptr;
    ASSERT_EQ(tl_program_print(program.get(), &text, nullptr), TL_OK);
    const Blob blob(text);
    tl_program* made = nullptr;
    tl_error* error = nullptr;
    const tl_status status =
        tl_program_parse(context.get(), tl_blob_data(text), tl_blob_size(text), "p.tl", &made, &error);
    const Program again(made);
    const Failure parse_failure(error);
    ASSERT_EQ(status, TL_OK) << tl_error_message(error) << "\n" << tl_blob_data(text);
    ASSERT_STREQ(tl_program_hash(again.get()), tl_program_hash(program.get())) << tl_blob_data(text);
  }
  // Both sides must be reached for the test to mean something.
  EXPECT_GT(accepted, kSequences / 20);
  EXPECT_GT(refused, kSequences / 20);
}

}  // namespace
}  // namespace tilegen::test
