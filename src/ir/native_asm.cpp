#include "ir/native_asm.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "ir/asm_lexer.h"

namespace tilegen::ir {
namespace {

using assembly::AsmLexer;
using assembly::AsmToken;

constexpr std::string_view kOperandHint =
    "operands are $0, $1, ...: the results, then the parameters, and numbers";

class AsmReader {
 public:
  AsmReader(std::string_view text, bool lines, size_t results, size_t parameters)
      : lexer_(text, lines), results_(results), operands_(results + parameters), written_(results, false) {
    advance();
  }

 protected:
  bool advance() {
    token_ = lexer_.next();
    return true;
  }
  bool accept(std::string_view s) { return token_.is(s) && advance(); }
  std::string shown() const {
    return token_.kind == AsmToken::Kind::end ? "its end"
                                              : "'" + std::string(token_.text.substr(0, 40)) + "'";
  }
  bool fail(std::string message, std::string_view hint) {
    if (!error_) error_ = NativeAsmError{std::move(message), std::string(hint)};
    return false;
  }
  // $n, read or written.
  bool operand(bool write) {
    const size_t n = token_.operand;
    const std::string name(token_.text);
    if (n >= operands_)
      return fail("there is no operand " + name, counted(results_, "result") + " and " +
                                                     counted(operands_ - results_, "parameter") +
                                                     " are $0 to $" + std::to_string(operands_ - 1));
    if (write && n >= results_)
      return fail("it writes its parameter " + name,
                  "parameters are only read; results are $0" +
                      (results_ > 1 ? " to $" + std::to_string(results_ - 1) : std::string()));
    if (write) written_[n] = true;
    return advance();
  }
  NativeAsmRead done(NativeAsm code) {
    for (size_t i = 0; i < results_ && !error_; ++i)
      if (!written_[i]) fail("it never writes its result $" + std::to_string(i), "write each result");
    if (!error_ && code.instructions == 0) fail("it has no instruction", "write one");
    return {error_ ? NativeAsm() : std::move(code), error_};
  }

  AsmLexer lexer_;
  AsmToken token_;
  size_t results_, operands_;
  std::vector<bool> written_;
  std::optional<NativeAsmError> error_;
};

// PTX instructions that compute in registers, the first operand being what they write.
constexpr std::string_view kPtxWords[] = {
    "abs",    "add",      "addc",  "and",      "bfe",       "bfi",       "bfind", "bmsk",  "brev",  "clz",
    "cnot",   "copysign", "cos",   "cvt",      "div",       "dp2a",      "dp4a",  "ex2",   "fma",   "fns",
    "lg2",    "lop3",     "mad",   "mad24",    "madc",      "max",       "min",   "mov",   "mul",   "mul24",
    "neg",    "not",      "or",    "popc",     "prmt",      "rcp",       "rem",   "rsqrt", "sad",   "selp",
    "set",    "setp",     "shf",   "shl",      "shr",       "sin",       "slct",  "sqrt",  "sub",   "subc",
    "szext",  "tanh",     "testp", "vabsdiff", "vabsdiff2", "vabsdiff4", "vadd",  "vadd2", "vadd4", "vavrg2",
    "vavrg4", "vmad",     "vmax",  "vmax2",    "vmax4",     "vmin",      "vmin2", "vmin4", "vset",  "vset2",
    "vset4",  "vshl",     "vshr",  "vsub",     "vsub2",     "vsub4",     "xor"};

constexpr std::string_view kPtxHint =
    "instructions of PTX that compute in registers of a thread are taken; what reads memory, other threads "
    "or "
    "special registers, jumps or waits is not";

class PtxReader : AsmReader {
 public:
  PtxReader(std::string_view text, size_t results, size_t parameters)
      : AsmReader(text, false, results, parameters), text_(text) {}

  NativeAsmRead read() {
    while (token_.kind != AsmToken::Kind::end && !error_) statement();
    if (!error_ && !scopes_.empty()) fail("a '{' is not closed", "add the missing '}'");
    NativeAsm code;
    code.text = text_;
    code.instructions = instructions_;
    return done(std::move(code));
  }

 private:
  bool statement() {
    if (accept("{")) {
      if (scopes_.size() == kMaxScopes) return fail("braces nest deeper than 8", "declare registers once");
      scopes_.emplace_back();
      return true;
    }
    if (token_.is("}")) {
      if (scopes_.empty()) return fail("a '}' closes nothing", "remove it");
      scopes_.pop_back();
      return advance();
    }
    if (token_.is(".reg")) return declaration();
    ++instructions_;
    if (accept("@")) {
      accept("!");
      if (!register_named()) return false;
    }
    return instruction();
  }

  // .reg .b32 t, u;
  bool declaration() {
    advance();
    if (scopes_.empty()) return fail(".reg stands outside of braces", "open a block: { .reg .b32 t; ... }");
    if (token_.kind != AsmToken::Kind::word || token_.text[0] != '.')
      return fail("expected the registers' type after .reg, found " + shown(), "write .reg .b32 t;");
    advance();
    do {
      if (token_.kind != AsmToken::Kind::word || token_.text.find('.') != token_.text.npos)
        return fail("expected a register's name, found " + shown(), "write .reg .b32 t;");
      scopes_.back().insert(std::string(token_.text));
      advance();
    } while (accept(","));
    return closed();
  }

  bool closed() {
    if (accept(";")) return true;
    return fail("expected ';' or ',' and an operand, found " + shown(), "an instruction ends with ';'");
  }

  bool instruction() {
    if (token_.kind != AsmToken::Kind::word)
      return fail("expected an instruction, found " + shown(), kPtxHint);
    const std::string_view word = token_.text.substr(0, token_.text.find('.'));
    if (std::find(std::begin(kPtxWords), std::end(kPtxWords), word) == std::end(kPtxWords))
      return fail("the instruction " + shown() + " is not taken", kPtxHint);
    advance();
    if (!value(true)) return false;
    while (accept(","))
      if (!value(false)) return false;
    return closed();
  }

  // An operand, or several in braces (vectors) or joined by '|' (two predicates).
  bool value(bool write) {
    if (accept("{")) {
      do {
        if (!single(write)) return false;
      } while (accept(","));
      return accept("}") || fail("expected '}', found " + shown(), kOperandHint);
    }
    do {
      if (!single(write)) return false;
    } while (accept("|"));
    return true;
  }

  bool single(bool write) {
    if (token_.kind == AsmToken::Kind::operand) return operand(write);
    if (!write && (token_.is("-") || token_.is("!"))) advance();
    if (!write && token_.kind == AsmToken::Kind::number) return advance();
    if (!write && token_.kind == AsmToken::Kind::operand) return operand(false);
    return register_named();
  }

  bool register_named() {
    const std::string name(token_.text);
    if (token_.kind == AsmToken::Kind::word)
      for (const auto& scope : scopes_)
        if (scope.contains(name)) return advance();
    return fail(shown() + " is no operand",
                "operands are $0, $1, ...: the results, then the parameters; numbers; and registers that the "
                "text declares: { .reg .b32 t; ... }");
  }

  static constexpr size_t kMaxScopes = 8;
  std::string_view text_;
  std::vector<std::set<std::string>> scopes_;
  int64_t instructions_ = 0;
};

// Parts of names of vector instructions that do more than compute in registers of their lane.
constexpr std::string_view kGcnRefused[] = {"cmpx", "lane",   "mfma",   "smfmac",  "accvgpr",
                                            "swap", "movrel", "interp", "clrexcp", "dpp"};
constexpr std::string_view kGcnHint =
    "vector instructions (v_...) that compute in registers of their lane are taken; what reads memory, other "
    "lanes or scalar registers, jumps or waits is not";
// Modifiers behind the operands, alone or with a value.
constexpr std::string_view kGcnModifiers[] = {"clamp",      "mul",      "div",     "op_sel",
                                              "op_sel_hi",  "neg_lo",   "neg_hi",  "dst_sel",
                                              "dst_unused", "src0_sel", "src1_sel"};

class GcnReader : AsmReader {
 public:
  GcnReader(std::string_view text, size_t results, size_t parameters)
      : AsmReader(text, true, results, parameters) {}

  // Instructions end with ';' or their line.
  NativeAsmRead read() {
    while (token_.kind != AsmToken::Kind::end && !error_) {
      if (token_.is(";") || token_.is("\n"))
        advance();
      else
        instruction();
    }
    return done(std::move(code_));
  }

 private:
  bool ends() const { return token_.kind == AsmToken::Kind::end || token_.is(";") || token_.is("\n"); }

  bool instruction() {
    const std::string_view word = token_.text;
    if (token_.kind != AsmToken::Kind::word || !word.starts_with("v_") || word.find('.') != word.npos)
      return fail("the instruction " + shown() + " is not taken", kGcnHint);
    for (const std::string_view part : kGcnRefused)
      if (word.find(part) != word.npos) return fail("the instruction " + shown() + " is not taken", kGcnHint);
    if (code_.instructions++ > 0) code_.text += '\n';
    code_.carry |= word.starts_with("v_div_fmas");
    put();
    code_.text += ' ';
    if (!value(true)) return false;
    while (token_.is(",")) {
      put();
      code_.text += ' ';
      if (!value(false)) return false;
    }
    while (!ends())
      if (!modifier()) return false;
    return true;
  }

  bool put() {
    code_.text += token_.text;
    return advance();
  }

  // $1, -$1, |$1|, -|$1|, abs($1), neg($1), sext($1), 1.0, vcc
  bool value(bool write) {
    if (token_.is("vcc")) {
      code_.carry = true;
      return put();
    }
    if (write) return plain(true);
    if (token_.is("-")) put();
    if (token_.kind == AsmToken::Kind::number) return put();
    if (token_.is("|")) return put() && plain(false) && closing("|");
    if (token_.is("abs") || token_.is("neg") || token_.is("sext")) {
      put();
      return closing("(") && plain(false) && closing(")");
    }
    return plain(false);
  }
  bool closing(std::string_view mark) {
    if (token_.is(mark)) return put();
    return fail("expected '" + std::string(mark) + "', found " + shown(), kOperandHint);
  }
  bool plain(bool write) {
    if (token_.kind != AsmToken::Kind::operand) return fail(shown() + " is no operand", kOperandHint);
    code_.text += token_.text;
    return operand(write);
  }

  // clamp, mul:2, op_sel:[0,1], dst_sel:WORD_1
  bool modifier() {
    if (std::find(std::begin(kGcnModifiers), std::end(kGcnModifiers), token_.text) == std::end(kGcnModifiers))
      return fail("expected ',' and an operand, a modifier or the instruction's end, found " + shown(),
                  "instructions end with ';' or their line");
    code_.text += ' ';
    put();
    if (!token_.is(":")) return true;
    put();
    if (token_.kind == AsmToken::Kind::word || token_.kind == AsmToken::Kind::number) return put();
    if (!closing("[")) return false;
    do {
      if (token_.kind != AsmToken::Kind::number)
        return fail("expected 0 or 1, found " + shown(), "write op_sel:[0,1]");
      put();
    } while (token_.is(",") && put());
    return closing("]");
  }

  NativeAsm code_;
};

}  // namespace

std::string counted(size_t n, std::string_view what) {
  return std::to_string(n) + ' ' + std::string(what) + (n == 1 ? "" : "s");
}

NativeAsmRead read_native_asm(NativeForm form, std::string_view text, size_t results, size_t parameters) {
  if (form == NativeForm::ptx) return PtxReader(text, results, parameters).read();
  return GcnReader(text, results, parameters).read();
}

}  // namespace tilegen::ir
