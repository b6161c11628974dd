// Random sequences of builder calls: whatever is called with whatever, there is an answer and no crash, and
// what is accepted reads back from its own text.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <regex>

#include "call_player.h"

namespace tilegen::test {
namespace {

constexpr int kSequences = 4000;
const std::regex kCallOfNative("f[0-9]+:[01]\\(");
const std::regex kAlongRows("(reduce|scan|cumsum) ");

TEST(RandomCalls, EverySequenceHasAnAnswer) {
  const Context context = make_context();
  int accepted = 0, refused = 0, called = 0, along_rows = 0;
  for (uint32_t seed = 0; seed < kSequences; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Player player(context, [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); });
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
    tl_blob* source = nullptr;
    ASSERT_EQ(tl_program_emit_c(program.get(), &source, nullptr), TL_OK);
    const Blob owned_source(source);
    // What the text calls the C source calls, too.
    const bool calls = std::regex_search(tl_blob_data(text), kCallOfNative);
    ASSERT_EQ(std::strstr(tl_blob_data(source), "CALL(\"f") != nullptr, calls) << tl_blob_data(source);
    called += calls;
    along_rows += std::regex_search(tl_blob_data(text), kAlongRows);
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
  EXPECT_GT(called, 0);
  EXPECT_GT(along_rows, 0);
}

}  // namespace
}  // namespace tilegen::test
