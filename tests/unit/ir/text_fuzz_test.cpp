// Broken texts of every kind: the parser returns a program that prints and reads back, or diagnostics; never
// anything else.
#include <gtest/gtest.h>

#include <random>

#include "ir/text.h"
#include "text_samples.h"

namespace tilegen::ir {
namespace {

constexpr uint32_t kSeed = 20240607;

// Returns whether the text was a program.
bool survives(const std::string& text) {
  Expected<Program> p = parse_program(text, "fuzz.tl", Limits());
  if (!p) {
    EXPECT_FALSE(p.error().diagnostics.empty());
    EXPECT_LE(p.error().diagnostics.size(), static_cast<size_t>(Limits().diagnostics));
    for (const Diagnostic& d : p.error().diagnostics) {
      EXPECT_NE(d.location.line, 0u);
      EXPECT_FALSE(d.message.empty());
      EXPECT_FALSE(d.hint.empty());
    }
    return false;
  }
  std::string printed = print_program(*p);
  Expected<Program> again = parse_program(printed, "again.tl", Limits());
  EXPECT_TRUE(again) << again.error().to_text() << "\n" << printed;
  if (again) {
    EXPECT_EQ(print_program(*again), printed);
    EXPECT_EQ(statement_paths(*again).size(), p->stmts.size());
  }
  return true;
}

class Mutator {
 public:
  explicit Mutator(std::vector<TextSample> samples) : samples_(std::move(samples)) {}

  std::string next() {
    std::string text = samples_[pick(samples_.size())].text;
    for (size_t n = 1 + pick(3); n > 0; --n) mutate(text);
    return text;
  }

 private:
  size_t pick(size_t n) { return n == 0 ? 0 : std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  void mutate(std::string& text) {
    static const std::string pieces[] = {"{",
                                         "}",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         ":+",
                                         "->",
                                         "..",
                                         "=",
                                         "==",
                                         "-",
                                         "0",
                                         "9223372036854775807",
                                         "0x7e01:f16",
                                         "inf:f32",
                                         "1.5f32",
                                         "i",
                                         "A",
                                         "copy",
                                         "kernel k grid (b: 1) {",
                                         "if ",
                                         "else {",
                                         "alloc ",
                                         "\n",
                                         ";",
                                         "\xff",
                                         "true"};
    size_t at = pick(text.size() + 1), length = 1 + pick(12);
    switch (pick(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, pieces[pick(std::size(pieces))]);
        break;
      case 2:
        text.replace(at, length, pieces[pick(std::size(pieces))]);
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(pick(256));
        break;
      case 4:
        text.insert(pick(text.size() + 1), text.substr(at, 1 + pick(200)));
        break;  // repeat a stretch elsewhere
      case 5:
        text.resize(at);
        break;
      case 6:
        swap_words(text);
        break;
    }
  }

  // Exchanges two words, which keeps most texts close to the grammar.
  void swap_words(std::string& text) {
    auto word_at = [&](size_t at) {
      auto is_word = [&](size_t i) {
        return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_';
      };
      size_t first = at, last = at;
      while (first > 0 && is_word(first - 1)) --first;
      while (last < text.size() && is_word(last)) ++last;
      return std::pair(first, last - first);
    };
    if (text.empty()) return;
    auto a = word_at(pick(text.size())), b = word_at(pick(text.size()));
    if (a.first > b.first) std::swap(a, b);
    if (a.first + a.second > b.first) return;
    std::string left = text.substr(a.first, a.second), right = text.substr(b.first, b.second);
    text.replace(b.first, b.second, left);
    text.replace(a.first, a.second, right);
  }

  std::vector<TextSample> samples_;
  std::mt19937 random_{kSeed};
};

TEST(TextFuzz, MutatedSamples) {
  Mutator mutator(text_samples());
  int programs = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = mutator.next();
    programs += survives(text);
    if (HasFailure()) FAIL() << "mutation " << i << "\n" << text;
  }
  EXPECT_GT(programs, 50);    // the mutations stay near the language,
  EXPECT_LT(programs, 1500);  // but leave it
}

// Statements are read on where the line of the only kernel is refused.
TEST(TextFuzz, StatementsOfARefusedKernel) {
  for (const char* statement :
       {"threads i in 32 { barrier }", "assert true, \"text\"", "print \"text\", 1", "alloc t: shared f32[4]",
        "parallel i in 4 { A[i] = 0.0 }", "compress A -> A, A", "sort A -> A", "argmax A -> A, A",
        "gemm_sparse A, A, A -> A", "if true { return }", "x: copy A -> A", "let y = 1", "var y = 1"}) {
    const std::string text =
        "tl 1 program t\ntensor A: f32[4]\nkernel k grid [b: 1] {\n  " + std::string(statement) + "\n}\n";
    EXPECT_FALSE(survives(text)) << text;
  }
}

// Extents that are refused do not stop the statements in their loops from being read.
TEST(TextFuzz, StatementsInRefusedLoops) {
  for (const char* head :
       {"threads i in 0", "threads i, j in 0, 4", "threads i, j in 32", "parallel i, j in 4",
        "parallel i, j in 4- 8", "parallel i in 4, 8", "threads i in 8, 4", "parallel i in 0"})
    for (const char* statement : {"assert true, \"text\"", "print \"text\", 1", "A[0] = 1.0"}) {
      const std::string text = "tl 1 program t\ntensor A: f32[4]\nkernel k grid (b: 1) {\n  " +
                               std::string(head) + " {\n    " + statement + "\n  }\n}\n";
      EXPECT_EQ(survives(text), std::string(head).find("in 0") != std::string::npos)
          << text;  // refused by checks
    }
}

// Bounds that are refused leave no place for what the loop tells.
TEST(TextFuzz, StatementsInLoopsWithoutBounds) {
  for (const char* head : {"serial i in j .. 5", "serial i in 1 .. j", "unroll i in j + 1 .. 2",
                           "serial i in j .. 5 while A[0] > 0", "pipelined i in 2 :+ j"})
    for (const char* statement : {"assert true, \"text\"", "print \"text\", 1", "copy A -> A"}) {
      const std::string text = "tl 1 program t\ntensor A: f32[4]\nkernel k grid (b: 1) {\n  " +
                               std::string(head) + " {\n    " + statement + "\n  }\n}\n";
      EXPECT_FALSE(survives(text)) << text;
    }
}

// Where the largest stands is asked of what can be compared.
TEST(TextFuzz, PlacesOfTypesThatNothingIsComputedIn) {
  for (const char* type : {"e4m3", "e5m2fnuz", "e5m2", "e2m1", "e8m0"}) {
    const std::string t = type;
    for (const bool of_both : {true, false}) {
      const std::string text = "tl 1 program t\nkernel k grid (b: 1) {\n  alloc x: shared " + t +
                               "[4, 8]\n  alloc v: shared " + (of_both ? t : "f32") +
                               "[4]\n  alloc p: shared i32[4]\n  argmax x -> v, p {axis = 1}\n}\n";
      EXPECT_FALSE(survives(text)) << text;
    }
  }
}

// And those on tiles whose declarations are refused.
TEST(TextFuzz, StatementsOnARefusedTile) {
  for (const char* statement :
       {"compress t -> v, p", "compress v -> t, p", "compress v -> v, t", "gemm_sparse t, v, p -> v",
        "gemm_sparse v, t, p -> v", "gemm_sparse v, v, t -> v", "gemm_sparse v, v, p -> t", "sort t -> v",
        "topk v -> t, p", "argmax t -> v, p", "reduce t -> v", "scan t -> v", "cumsum t -> v",
        "print \"t\" of t", "copy t -> v", "fill t, 0.0", "parallel i in 4 { t[i] = v[0, i] }"}) {
    const std::string text =
        "tl 1 program p\nkernel k grid (b: 1) {\n  alloc t:$shared f32[4, 8]\n  alloc v: shared f32[4, 8]\n"
        "  alloc p: shared u8[4, 1]\n  " +
        std::string(statement) + "\n}\n";
    EXPECT_FALSE(survives(text)) << text;
  }
}

TEST(TextFuzz, RandomBytes) {
  std::mt19937 random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 300, '\0');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_FALSE(survives(text));
    EXPECT_FALSE(survives("tl 1 program t\nkernel k grid (b: 1) {\n" + text));
  }
}

TEST(TextFuzz, RandomTokens) {
  static const char* const tokens[] = {
      "tl",     "1",        "program", "t",    "dim",    "n",       "scalar",    "x",      ":",
      "f32",    "tensor",   "A",       "[",    "]",      "strides", "readonly",  "kernel", "grid",
      "(",      ")",        "{",       "}",    "alloc",  "shared",  "serial",    "in",     "..",
      ":+",     "parallel", "if",      "else", "copy",   "fill",    "gemm",      "reduce", "->",
      ",",      "=",        "+",       "-",    "*",      "/",       "//",        "%",      "<",
      "<=",     "and",      "or",      "not",  "max",    "select",  "cast",      "0",      "64",
      "1.5f32", "true",     "inf",     "nan",  "0x7e00", ">=",      "divisible", "stages", "\n"};
  std::mt19937 random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    std::string text = "tl 1 program t\ndim n\nscalar x: f32\ntensor A: f32[n]\nkernel k grid (b: n) {\n";
    for (size_t n = random() % 80; n > 0; --n)
      text += std::string(tokens[random() % std::size(tokens)]) + " ";
    survives(text);
    survives(text + "\n}");
    if (HasFailure()) FAIL() << text;
  }
}

}  // namespace
}  // namespace tilegen::ir
