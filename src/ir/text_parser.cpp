// Tokens, names, lists and errors of the text parser.
#include "ir/text_parser.h"

#include <charconv>
#include <utility>

#include "ir/text.h"
#include "support/diag_codes.h"
#include "support/included_place.h"
#include "support/spelling.h"

namespace tilegen::ir::text {
namespace {

// " of rows.tl", where that is not the text that is read.
std::string place_in(std::string_view file, std::string_view current) {
  return file == current ? "" : " of " + std::string(file_name({std::string(file), 1, 1}));
}

}  // namespace

void Parser::advance() {
  if (!stopped_) token_ = lexer_.next();
}

bool Parser::accept(std::string_view symbol_or_word) {
  if (!token_.is(symbol_or_word)) return false;
  advance();
  return true;
}

bool Parser::expect(std::string_view symbol_or_word, std::string_view where) {
  if (accept(symbol_or_word)) return true;
  std::string what = "'" + std::string(symbol_or_word) + "' " + std::string(where);
  return expected(what, "write '" + std::string(symbol_or_word) + "' here");
}

bool Parser::parse_name(Token& out, std::string_view what, NameUse use) {
  // A reserved word on the next line is the next statement; on this one it is a badly chosen name.
  bool reserved = use == NameUse::value && token_.kind == TokenKind::name && is_reserved(token_.text);
  if (reserved && !token_.first_on_line) {
    error(DiagCode::bad_name, token_,
          describe(token_) + " is a word of the language and cannot name a variable or buffer",
          "choose another name, for example '" + std::string(token_.text) + "_'");
  } else if (reserved || token_.kind != TokenKind::name) {
    return expected(what, "a name starts with a letter or '_' and goes on with letters, digits and '_'");
  }
  if (token_.text.size() > kMaxNameLength) {
    error(DiagCode::bad_name, token_,
          std::string(what) + " has " + std::to_string(token_.text.size()) + " characters; at most " +
              std::to_string(kMaxNameLength) + " are allowed",
          "shorten the name");
    return false;
  }
  out = token_;
  advance();
  return true;
}

bool Parser::parse_int(int64_t& out, std::string_view what) {
  bool negative = accept("-");
  if (token_.kind != TokenKind::number) return expected(what, "write a plain integer such as 128");
  if (token_.fractional || !token_.suffix.empty())
    return expected(what, "write a plain integer without point or type suffix");
  const std::string digits = (negative ? "-" : "") + token_.digits();
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out, token_.base);
  if (failed != std::errc()) {
    error(DiagCode::syntax_error, token_, "integer " + describe(token_).substr(7) + " does not fit 64 bits",
          "the range is -9223372036854775808 to 9223372036854775807");
    out = 1;
  }
  advance();
  return true;
}

bool Parser::parse_dtype(DType& out) {
  if (token_.kind != TokenKind::name) return expected("an element type", "write a type such as f32");
  if (std::optional<DType> type = type_named(token_.text)) {
    out = *type;
    if (const Symbol* symbol = find(token_.text);
        symbol != nullptr && symbol->kind == SymbolKind::compile_param)
      param_used_[symbol->id] = true;
  } else {
    NearestName nearest(token_.text);
    std::string all;
#define TILEGEN_DTYPE(name, value, text, bits, kind) \
  nearest.offer(text);                               \
  all += all.empty() ? text : ", " text;
#include "ir/dtypes.def"
#undef TILEGEN_DTYPE
    for (size_t i = 0; i < param_of_types_.size(); ++i)
      if (param_of_types_[i]) nearest.offer(program_.compile_params[i].name);
    error(DiagCode::unknown_name, token_, "expected an element type, found " + describe(token_),
          nearest.hint("the types are " + all));
    out = DType::f32;
  }
  advance();
  return true;
}

// Reports a name that is taken; the older owner keeps it.
bool Parser::declare(const Token& name, SymbolKind kind, uint32_t id) {
  const Symbol* old = find(name.text);
  if (kind == SymbolKind::kernel && old == nullptr) {
    auto it = kernels_.find(name.text);
    if (it != kernels_.end()) old = &it->second;
  }
  if (old != nullptr) {
    error(DiagCode::duplicate_name, name,
          describe(name) + " is already declared at line " + std::to_string(old->line) + ", column " +
              std::to_string(old->column) + place_in(old->file, file_),
          "choose a name that is not in use here");
    return false;
  }
  Symbol symbol{kind, id, name.line, name.column, file_};
  if (kind == SymbolKind::kernel) {
    kernels_.emplace(name.text, symbol);
  } else {
    symbols_.emplace(name.text, symbol);
    declared_.push_back(name.text);
  }
  return true;
}

const Symbol* Parser::find(std::string_view name) const {
  auto it = symbols_.find(name);
  return it == symbols_.end() ? nullptr : &it->second;
}

void Parser::forget_since(size_t scope_mark) {
  while (declared_.size() > scope_mark) {
    symbols_.erase(declared_.back());
    declared_.pop_back();
  }
}

// The buffer of that name, or an invalid id after an error.
BufferId Parser::find_buffer(const Token& name) {
  const Symbol* symbol = find(name.text);
  if (symbol == nullptr) {
    unknown_name(name, "a tensor or buffer", true, false);
    return {};
  }
  if (symbol->kind != SymbolKind::buffer) {
    const bool is_param = symbol->kind == SymbolKind::compile_param;
    error(DiagCode::syntax_error, name,
          std::string("expected a tensor or buffer, found the ") +
              (is_param ? "compile-time parameter " : "variable ") + describe(name),
          "a variable stands alone, without '[...]', and only inside expressions");
    return {};
  }
  return BufferId(symbol->id);
}

void Parser::unknown_name(const Token& name, std::string_view what, bool buffers, bool variables) {
  NearestName nearest(name.text);
  for (std::string_view candidate : declared_) {
    bool is_buffer = symbols_.at(candidate).kind == SymbolKind::buffer;
    if (is_buffer ? buffers : variables) nearest.offer(candidate);
  }
  error(DiagCode::unknown_name, name,
        "expected " + std::string(what) + ", found the unknown name " + describe(name),
        foreign_hint(name.text).empty() ? nearest.hint("declare it before it is used")
                                        : std::string(foreign_hint(name.text)));
}

// Always false, so that a caller can return it.
bool Parser::expected(std::string_view what, std::string_view hint) {
  const bool mark = token_.kind != TokenKind::string && token_.kind != TokenKind::name;
  if (const std::string_view foreign = foreign_hint(token_.text); mark && !foreign.empty()) hint = foreign;
  error(DiagCode::syntax_error, token_, "expected " + std::string(what) + ", found " + describe(token_),
        std::string(hint));
  return false;
}

void Parser::error(DiagCode code, const Token& at, std::string message, std::string hint) {
  error(code, location(at), std::move(message), std::move(hint));
}

void Parser::error(DiagCode code, SourceLocation at, std::string message, std::string hint) {
  if (stopped_) return;
  Diagnostic d;
  d.code = code;
  d.op = open_.empty() || program_.kernels.empty() ? program_.name : program_.kernels.back().name;
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.location = std::move(at);
  d.stage = "parse";
  diagnostics_.push_back(std::move(d));
  if (static_cast<int64_t>(diagnostics_.size()) >= limits_.diagnostics) limit_reached();
}

bool Parser::limit(DiagCode code, const Token& at, std::string message, std::string hint) {
  error(code, at, std::move(message), std::move(hint));
  limit_reached();
  return false;
}

// Everything that reads on sees the end of the text.
void Parser::limit_reached() {
  stopped_ = true;
  Token end;
  end.line = token_.line;
  end.column = token_.column;
  token_ = end;
}

bool Parser::starts_declaration(const Token& t) {
  return t.is("dim") || t.is("scalar") || t.is("tensor") || t.is("param") || t.is("let") || t.is("fn") ||
         t.is("atom") || t.is("include") || t.is("kernel");
}

// Goes on after a syntax error: at the next token that stands first on a line (outside kernels: a
// declaration), or at the "}" that closes the block around the statement. Blocks opened on the way are read
// and dropped. `start` is the statement's first token; names declared since `scope_mark` live until the first
// dropped block closes, or on when there is none.
void Parser::recover(const Token& start, size_t scope_mark) {
  int opened = 0;
  bool in_attributes = std::exchange(in_attributes_, false);
  bool skip = !token_.first_on_line || (token_.line == start.line && token_.column == start.column);
  for (; token_.kind != TokenKind::end; advance()) {
    bool resumable =
        open_.empty() ? starts_declaration(token_) : token_.kind == TokenKind::name || token_.is("}");
    if (token_.first_on_line && !skip && resumable) break;
    skip = false;
    if (token_.is("{")) ++opened;
    if (token_.is("}") && opened > 0) {
      --opened;
    } else if (token_.is("}") && in_attributes) {
      in_attributes = false;
    } else if (token_.is("}") && !open_.empty()) {
      break;
    }
  }
  for (; opened > 0 && !stopped_; --opened) {
    open_block(BlockKind::discarded, StmtId(), scope_mark);
    scope_mark = declared_.size();
  }
}

// A comma-separated list up to `close`, which is consumed.
bool Parser::parse_exprs(std::string_view close, std::vector<ExprId>& out, std::string_view what) {
  if (accept(close)) return true;
  do {
    ExprId id;
    if (!room_for_rank(out.size(), token_) || !parse_index(id, what)) return false;
    out.push_back(id);
  } while (accept(","));
  return expect(close, "or ',' and " + std::string(what));
}

bool Parser::parse_index(ExprId& out, std::string_view what) {
  Token at = token_;
  if (!parse_expr(out)) return false;
  require_index(out, what, at);
  return true;
}

}  // namespace tilegen::ir::text
