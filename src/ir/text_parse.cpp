// Program level of the text form: header, declarations, kernels.
#include "ir/packed_types.h"
#include "ir/text.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/hash.h"
#include "support/spelling.h"

namespace tilegen::ir::text {

// `who` has the bytes read so far.
bool Parser::check_bytes(std::string_view who, const Token& at) {
  if (static_cast<int64_t>(bytes_) <= limits_.text_bytes) return true;
  return limit(DiagCode::limit_bytes, at,
               std::string(who) + std::to_string(bytes_) + " bytes; at most " +
                   std::to_string(limits_.text_bytes) + " are read",
               "split the program, or raise the limit when the text is trusted");
}

// At its end.
void Parser::close_text() {
  if (open_.empty()) return;
  const Token& at = open_.back().opened;
  expected("'}' to close the block opened at line " + std::to_string(at.line) + ", column " +
               std::to_string(at.column),
           "add the missing '}'; what stands behind a ';' on its line is a comment");
}

Expected<Program> Parser::run() {
  check_bytes("the text has ", token_);
  advance();
  if (!parse_header()) recover(token_, 0);
  read_items();
  if (cancelled_) return cancellation_->error("", "in line " + std::to_string(token_.line));
  close_text();
  if (program_.kernels.empty() && diagnostics_.empty()) {
    expected("a kernel", "a program ends with at least one 'kernel NAME grid (...) { ... }'");
  }
  if (diagnostics_.empty()) check_bindings();
  if (diagnostics_.empty()) resolve();
  if (!diagnostics_.empty()) {
    Error e;
    e.diagnostics = std::move(diagnostics_);
    return e;
  }
  return std::move(program_);
}

// Declarations and kernels, to the end of the text.
void Parser::read_items() {
  while (token_.kind != TokenKind::end || leave_text()) {
    if (token_.kind == TokenKind::end) continue;
    if (stop_()) {
      cancelled_ = true;
      return;
    }
    if (open_.empty()) {
      parse_top_level();
    } else if (token_.is("}")) {
      close_block();
    } else {
      parse_item();
    }
  }
}

Checked Parser::run_part() {
  check_bytes("the text has ", token_);
  advance();
  read_items();
  if (cancelled_) return cancellation_->error("", "in line " + std::to_string(token_.line));
  close_text();
  if (diagnostics_.empty()) check_bindings();
  if (diagnostics_.empty()) return Unit{};
  Error e;
  e.diagnostics = std::move(diagnostics_);
  return e;
}

// Names stand for expressions, which a text writes as trees.
void Parser::resolve() {
  if (draft_.empty() && !has_packed_types(program_)) return;
  diagnostics_ = resolve_draft(program_, draft_, limits_);
  if (diagnostics_.empty() && written_nodes(program_) > static_cast<uint64_t>(limits_.expr_nodes))
    error(DiagCode::limit_nodes, token_,
          "with what its names stand for, the program has more than " + std::to_string(limits_.expr_nodes) +
              " expression nodes",
          "let loops inside parallel loops run less often, or split the program");
}

bool Parser::parse_header() {
  if (!expect("tl", "at the start of the text")) return false;
  if (token_.kind != TokenKind::number || token_.text != "1")
    return expected("the version 1 of the text form", "the first line is 'tl 1 program NAME'");
  advance();
  if (!expect("program", "after 'tl 1'")) return false;
  Token name;
  if (!parse_name(name, "the program's name", NameUse::other)) return false;
  program_.name = name.text;
  return true;
}

constexpr const char* kDeclarations =
    "'dim', 'scalar', 'tensor', 'param', 'let', 'fn', 'atom', 'include' or 'kernel'";

void Parser::parse_top_level() {
  Token start = token_;
  size_t mark = declared_.size();
  bool ok = false;
  if (!program_.kernels.empty() && starts_declaration(token_) && !token_.is("kernel") &&
      !token_.is("include")) {
    error(DiagCode::misplaced_statement, token_, describe(token_) + " stands after a kernel",
          "declare dims, scalars, tensors and compile-time parameters before the first kernel");
  }
  if (accept("include")) {
    ok = parse_include();
  } else if (static_cast<int64_t>(program_.params.size() + program_.compile_params.size()) >=
                 limits_.buffers &&
             !token_.is("kernel")) {
    limit(DiagCode::limit_nodes, token_,
          "a program has at most " + std::to_string(limits_.buffers) + " parameters",
          "declare fewer dims, scalars and tensors");
  } else if (accept("dim")) {
    ok = parse_dim();
  } else if (accept("scalar")) {
    ok = parse_scalar();
  } else if (accept("tensor")) {
    ok = parse_tensor();
  } else if (accept("param")) {
    ok = parse_param();
  } else if (accept("let")) {
    ok = parse_top_level_let();
  } else if (accept("fn")) {
    ok = parse_function();
  } else if (accept("atom")) {
    ok = parse_atom();
  } else if (accept("kernel")) {
    ok = parse_kernel();
  } else if (token_.is("tl")) {
    ok = misplaced_header();
  } else if (token_.is("}")) {
    expected(kDeclarations, "every open block is closed already; remove this '}'");
  } else {
    NearestName nearest(token_.text);
    for (std::string_view word :
         {"dim", "scalar", "tensor", "param", "let", "fn", "atom", "include", "kernel"})
      nearest.offer(word);
    expected(kDeclarations, nearest.hint("declare parameters, then kernels"));
  }
  if (!ok) recover(start, mark);
}

bool Parser::parse_dim() {
  Token name;
  if (!parse_name(name, "the dim's name")) return false;
  Var var;
  var.name = name.text;
  var.kind = VarKind::dim;
  var.location = location(name);
  VarId id(program_.vars.size());
  declare(name, SymbolKind::variable, id.value);
  program_.vars.push_back(var);
  program_.params.push_back({Param::Kind::dim, id, {}});
  for (;;) {
    int64_t* fact = nullptr;
    if (token_.is(">=")) fact = &program_.vars.back().lower;
    if (token_.is("<=")) fact = &program_.vars.back().upper;
    if (token_.is("divisible")) fact = &program_.vars.back().divisor;
    if (fact == nullptr) return true;
    advance();
    if (!parse_constant(*fact, "the number of the fact")) return false;
  }
}

bool Parser::parse_scalar() {
  Token name;
  if (!parse_name(name, "the scalar's name")) return false;
  Var var;
  var.name = name.text;
  var.kind = VarKind::scalar;
  var.location = location(name);
  VarId id(program_.vars.size());
  declare(name, SymbolKind::variable, id.value);
  bool ok = expect(":", "and the scalar's type") && parse_dtype(var.type);
  program_.vars.push_back(std::move(var));
  program_.params.push_back({Param::Kind::scalar, id, {}});
  return ok;
}

bool Parser::parse_tensor() {
  Token name;
  if (!parse_name(name, "the tensor's name")) return false;
  Buffer buffer;
  buffer.name = name.text;
  buffer.scope = MemScope::global;
  buffer.location = location(name);
  bool ok = expect(":", "and the tensor's type") && parse_dtype(buffer.type) &&
            expect("[", "and the tensor's shape") &&
            parse_exprs("]", buffer.shape, "an extent of the tensor");
  if (ok && accept("strides")) {
    ok =
        expect("[", "and the tensor's strides") && parse_exprs("]", buffer.strides, "a stride of the tensor");
    if (ok && buffer.strides.size() != buffer.shape.size()) {
      error(DiagCode::rank_mismatch, name,
            "tensor " + describe(name) + " has " + std::to_string(buffer.shape.size()) + " extents and " +
                std::to_string(buffer.strides.size()) + " strides",
            "give one stride per extent, or none for a compact tensor");
    }
  }
  if (ok && accept("of")) {  // as printed: the bytes of a packed tensor
    const Token at = token_;
    ok = parse_dtype(buffer.packed);
    if (ok && (!is_packed(buffer.packed) || buffer.type != DType::u8))
      error(DiagCode::dtype_mismatch, at,
            "elements of " + describe(name) + " are " + dtype_name(buffer.type) + " and hold no " +
                dtype_name(buffer.packed),
            "u8 elements hold the packed types: i4, u4, i2, u2, e2m1 and e8m0");
  }
  if (ok) buffer.optional = accept("optional");
  if (ok) buffer.constant = accept("constant");
  if (ok) buffer.read_only = buffer.constant || accept("readonly");
  if (ok && !buffer.read_only) buffer.workspace = accept("workspace");
  if (ok && !buffer.optional) buffer.optional = accept("optional");
  const bool optional = buffer.optional;
  BufferId id(program_.buffers.size());
  declare(name, SymbolKind::buffer, id.value);
  program_.buffers.push_back(std::move(buffer));
  program_.params.push_back({Param::Kind::tensor, {}, id});
  if (optional) add_presence(program_, id);
  return ok;
}

// What stands in the parentheses of present(...).
bool Parser::parse_present(ExprId& out) {
  Token name;
  advance();
  if (!parse_name(name, "the name of an optional tensor") || !expect(")", "behind the tensor's name"))
    return false;
  if (const BufferId tensor = find_buffer(name); tensor.valid()) {
    const VarId v = program_.presence(tensor);
    if (v.valid())
      out = program_.exprs.var(v, DType::boolean);
    else
      error(DiagCode::misplaced_statement, name,
            describe(name) + " is there in every launch, expected an optional tensor",
            "declare it optional, as in 'tensor bias: f32[n] readonly optional', or leave the question out");
  }
  return true;
}

bool Parser::parse_grid(Kernel& kernel, std::vector<Token>& names) {
  constexpr size_t kMaxGridRank = 3;
  if (!expect("grid", "after the kernel's name") || !expect("(", "and the grid's extents")) return false;
  do {
    Token name;
    ExprId extent;
    if (!parse_name(name, "the name of a block variable") || !expect(":", "and the grid's extent"))
      return false;
    if (names.size() == kMaxGridRank) {
      error(DiagCode::syntax_error, name, "a grid has 1 to 3 extents, this one has more",
            "fold several dimensions into one and split the block variable with // and %");
      return false;
    }
    if (!parse_index(extent, "a grid extent")) return false;
    names.push_back(name);
    kernel.grid.push_back(extent);
  } while (accept(","));
  return expect(")", "or ',' and a further grid extent");
}

bool Parser::parse_kernel() {
  if (static_cast<int64_t>(program_.kernels.size()) >= limits_.statements)
    return limit(DiagCode::limit_nodes, token_,
                 "a program has at most " + std::to_string(limits_.statements) + " kernels",
                 "split the program");
  Token name;
  if (!parse_name(name, "the kernel's name", NameUse::other)) return false;
  declare(name, SymbolKind::kernel, static_cast<uint32_t>(program_.kernels.size()));
  size_t mark = declared_.size();
  Kernel kernel;
  kernel.name = name.text;
  kernel.location = location(name);
  std::vector<Token> names;
  bool ok = parse_grid(kernel, names);
  for (const Token& var : names) kernel.block_vars.push_back(add_loop_var(var, VarKind::block_index));
  if (ok && accept("threads")) ok = parse_constant(kernel.threads, "the number of threads");
  ok = ok && parse_with(AnnotationPlace::kernel, "a kernel", kernel.annotations);
  labels_.clear();
  program_.kernels.push_back(std::move(kernel));
  statement_seen_ = false;
  return ok && open_block(BlockKind::kernel, StmtId(), mark);
}

}  // namespace tilegen::ir::text

namespace tilegen::ir {

Expected<Program> parse_program(std::string_view text, std::string_view file, const Limits& limits,
                                const Cancellation* cancellation, std::span<const ParamBinding> bindings,
                                const IncludeText& include) {
  return text::Parser(text, file, limits, cancellation, bindings, include).run();
}

Checked check_part(std::string_view text, std::string_view file, const Limits& limits,
                   const Cancellation* cancellation, std::span<const ParamBinding> bindings,
                   const IncludeText& include) {
  return text::Parser(text, file, limits, cancellation, bindings, include).run_part();
}

bool is_part(std::string_view text) { return !text::Lexer(text).next().is("tl"); }

std::string program_hash(const Program& p) {
  return p.written ? p.written->hash : stable_hash(print_program(p));
}

}  // namespace tilegen::ir
