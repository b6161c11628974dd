#include "ir/matrix_asm.h"

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "ir/asm_lexer.h"

namespace tilegen::ir {
namespace {

using assembly::AsmLexer;
using assembly::AsmToken;
using assembly::is_digit;

constexpr const char* kMatrices[] = {"the sum", "A", "B", "C"};

std::string number(int64_t v) { return std::to_string(v); }

// The numbers of the first m16n8k16 (`marks` "mnk") or 32x32x8 ("xx") in the instruction's word.
std::optional<std::array<int64_t, 3>> shape_in(std::string_view word, bool ptx) {
  for (size_t at = 0; at < word.size(); ++at) {
    if (at > 0 && (ptx ? word[at - 1] != '.' : is_digit(word[at - 1]))) continue;
    std::array<int64_t, 3> shape{};
    size_t to = at;
    bool fits = true;
    for (size_t i = 0; i < 3 && fits; ++i) {
      const char mark = ptx ? "mnk"[i] : i == 0 ? '\0' : 'x';
      if (mark != '\0') fits = to < word.size() && word[to++] == mark;
      const char* const begin = word.data() + to;
      const auto [end, bad] = std::from_chars(begin, word.data() + word.size(), shape[i]);
      fits = fits && bad == std::errc() && end != begin && shape[i] > 0;
      to = static_cast<size_t>(end - word.data());
    }
    if (fits) return shape;
  }
  return std::nullopt;
}

class MatrixAsmReader {
 public:
  MatrixAsmReader(NativeForm form, std::string_view text, const MatrixAsmShape& shape)
      : ptx_(form == NativeForm::ptx), shape_(shape), lexer_(text, !ptx_) {
    token_ = lexer_.next();
  }

  std::optional<NativeAsmError> refusal() {
    instruction() && (ptx_ ? registers() : tuples()) && ends();
    return error_;
  }

 private:
  void advance() { token_ = lexer_.next(); }
  bool accept(std::string_view s) {
    if (!token_.is(s)) return false;
    advance();
    return true;
  }
  std::string shown() const {
    return token_.kind == AsmToken::Kind::end ? "its end"
           : token_.is("\n")                  ? "the end of the line"
                                              : "'" + std::string(token_.text.substr(0, 60)) + "'";
  }
  bool fail(std::string message, std::string hint) {
    if (!error_) error_ = NativeAsmError{std::move(message), std::move(hint)};
    return false;
  }

  bool instruction() {
    const std::string_view word = token_.kind == AsmToken::Kind::word ? token_.text : std::string_view();
    if (word.starts_with("wgmma."))
      return fail(
          "it is " + shown() + ", an instruction of a warpgroup",
          "these read shared memory by descriptors, which only the library makes: leave the atom out, "
          "the planner takes them by itself; atoms are mma.sync of a warp");
    if (!word.starts_with(ptx_ ? "mma.sync.aligned." : "v_mfma_"))
      return fail("the instruction " + shown() + " is none of matrices",
                  ptx_ ? "write mma.sync.aligned.m16n8k16.row.col... and its operands"
                       : "write v_mfma_f32_32x32x8f16 $0, $1, $2, $3, or another of these");
    const auto shape = shape_in(word, ptx_);
    if (!shape || (*shape)[0] != shape_.m || (*shape)[1] != shape_.n || (*shape)[2] != shape_.k)
      return fail(shown() + " is not of " + number(shape_.m) + "x" + number(shape_.n) + "x" +
                      number(shape_.k) + ", which the atom is",
                  "give the atom the instruction's shape: A[m, k], B[k, n], C[m, n]");
    advance();
    return true;
  }

  // {$0, $1}, {$2}, {$3}, {$4, $5}
  bool registers() {
    const int64_t counts[] = {shape_.c, shape_.a, shape_.b, shape_.c};
    int64_t next = 0;
    for (size_t matrix = 0; matrix < 4; ++matrix) {
      if (matrix > 0 && !accept(","))
        return fail(
            "expected ',' and the registers of " + std::string(kMatrices[matrix]) + ", found " + shown(),
            operands_hint());
      if (!accept("{"))
        return fail(
            "expected '{' and the registers of " + std::string(kMatrices[matrix]) + ", found " + shown(),
            operands_hint());
      int64_t found = 0;
      do {
        if (token_.kind != AsmToken::Kind::operand) return fail(shown() + " is no operand", operands_hint());
        if (token_.operand != static_cast<size_t>(next + found))
          return fail(shown() + " is no register of " + kMatrices[matrix] + " in its place, which $" +
                          number(next + found) + " is",
                      operands_hint());
        ++found;
        advance();
      } while (found < counts[matrix] && accept(","));
      if (!accept("}"))
        return fail("expected '}' behind " + counted(static_cast<size_t>(counts[matrix]), "register") +
                        " of " + kMatrices[matrix] + ", found " + shown(),
                    operands_hint());
      if (found != counts[matrix])
        return fail("it has " + counted(static_cast<size_t>(found), "register") + " of " + kMatrices[matrix] +
                        ", which has " + number(counts[matrix]),
                    operands_hint());
      next += found;
    }
    return true;
  }

  // $0, $1, $2, $3
  bool tuples() {
    for (size_t matrix = 0; matrix < 4; ++matrix) {
      if (matrix > 0 && !accept(","))
        return fail("expected ',' and " + std::string(kMatrices[matrix]) + ", found " + shown(),
                    operands_hint());
      if (token_.kind != AsmToken::Kind::operand || token_.operand != matrix)
        return fail(shown() + " is not " + kMatrices[matrix] + ", which is $" + number(int64_t(matrix)),
                    operands_hint());
      advance();
    }
    return true;
  }

  bool ends() {
    const bool closed = accept(";");
    if (ptx_ && !closed) return fail("expected ';', found " + shown(), "the instruction ends with ';'");
    while (accept("\n")) {
    }
    if (token_.kind == AsmToken::Kind::end) return true;
    return fail("expected the text's end, found " + shown(),
                "an atom's text is one instruction without modifiers");
  }

  std::string operands_hint() const {
    if (!ptx_) return "the operands are $0, the sum; $1, A; $2, B; $3, C";
    const auto list = [](int64_t from, int64_t count) {
      return "$" + number(from) + (count > 1 ? " to $" + number(from + count - 1) : std::string());
    };
    return "the registers are " + list(0, shape_.c) + ", the sum; " + list(shape_.c, shape_.a) + ", A; " +
           list(shape_.c + shape_.a, shape_.b) + ", B; " + list(shape_.c + shape_.a + shape_.b, shape_.c) +
           ", C; those of a matrix stand between braces";
  }

  const bool ptx_;
  const MatrixAsmShape shape_;
  AsmLexer lexer_;
  AsmToken token_;
  std::optional<NativeAsmError> error_;
};

}  // namespace

std::optional<NativeAsmError> matrix_asm_refusal(NativeForm form, std::string_view text,
                                                 const MatrixAsmShape& shape) {
  return MatrixAsmReader(form, text, shape).refusal();
}

}  // namespace tilegen::ir
