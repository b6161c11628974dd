// Blocks and statements of the text form, except tile operations.
#include <algorithm>
#include <array>

#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {
namespace {

constexpr std::array<LoopKind, 4> kSingleVarLoops = {LoopKind::serial, LoopKind::unroll, LoopKind::vectorized,
                                                     LoopKind::pipelined};
constexpr std::array<MemScope, 3> kTileScopes = {MemScope::shared, MemScope::fragment, MemScope::local};

}  // namespace

void Parser::parse_item() {
  Token start = token_;
  size_t mark = declared_.size();
  bool ok = false;
  if (token_.kind != TokenKind::name) {
    expected("a statement or '}'", "a statement starts with an op, a loop, 'if', or the buffer it stores to");
  } else if (token_.is("kernel")) {
    ok = close_dangling_blocks();
  } else if (token_.is("include") && find(token_.text) == nullptr) {
    error(DiagCode::misplaced_statement, token_, "a text is included inside of a kernel",
          "include it in front of the kernel: a text declares functions, constants and parameters");
  } else if (accept("alloc")) {
    ok = parse_alloc();
  } else if (begins_view()) {
    ok = parse_view();
  } else {
    statement_seen_ = true;
    ok = parse_statement();
  }
  if (!ok) recover(start, mark);
}

// A kernel cannot stand in a block: the '}' before it are missing.
bool Parser::close_dangling_blocks() {
  const Token& at = open_.back().opened;
  expected("'}' to close the block opened at line " + std::to_string(at.line) + ", column " +
               std::to_string(at.column),
           "add the missing '}' before the kernel");
  while (!open_.empty()) {
    forget_since(open_.back().scope_mark);
    open_.pop_back();
  }
  return true;
}

bool Parser::open_block(BlockKind kind, StmtId stmt, size_t scope_mark) {
  OpenBlock block{kind, stmt, scope_mark, token_, {}};
  if (static_cast<int64_t>(open_.size()) > limits_.nesting)  // the kernel's own block is not counted
    return limit(DiagCode::limit_nesting, token_,
                 "loops and ifs nest deeper than " + std::to_string(limits_.nesting) + " levels",
                 "flatten the loops, or split the kernel");
  if (kind != BlockKind::discarded && !accept("{")) {
    const bool range = token_.is("..") || token_.is(":+"), stages = token_.is("num_stages");
    return expected("'{' to open the block",
                    range    ? "a parallel loop has extents alone, and counts from 0: parallel i in 16 { }"
                    : stages ? "write 'stages 3' here"
                             : "write '{' here");
  }
  open_.push_back(std::move(block));
  return true;
}

void Parser::close_block() {
  OpenBlock closed = std::move(open_.back());
  open_.pop_back();
  forget_since(closed.scope_mark);
  advance();
  switch (closed.kind) {
    case BlockKind::kernel:
      program_.kernels.back().body = std::move(closed.body);
      break;
    case BlockKind::loop:
      std::get<Loop>(program_.stmts[closed.stmt.value].node).body = std::move(closed.body);
      break;
    case BlockKind::then_body:
      std::get<Branch>(program_.stmts[closed.stmt.value].node).then_body = std::move(closed.body);
      break;
    case BlockKind::else_body:
      std::get<Branch>(program_.stmts[closed.stmt.value].node).else_body = std::move(closed.body);
      break;
    case BlockKind::discarded:
      break;
  }
  Token after = token_;
  if (closed.chosen.valid()) {
    if (!close_case(closed)) recover(after, declared_.size());
    return;
  }
  const bool goes_on = token_.is("else") && !open_.empty() && closed.kind != BlockKind::loop;
  if (!goes_on) close_chain();
  if (token_.is("else") && !open_.empty() && !parse_else(closed)) {
    close_chain();
    recover(after, declared_.size());
  }
}

bool Parser::parse_else(const OpenBlock& closed) {
  if (closed.kind == BlockKind::discarded) {
    advance();
    bool opens = accept("{");
    return opens && open_block(BlockKind::discarded, StmtId(), declared_.size());
  }
  if (closed.kind != BlockKind::then_body)
    return expected("a statement or '}'", "'else' follows only the '}' of an 'if'");
  advance();
  if (!token_.is("if")) return open_block(BlockKind::else_body, closed.stmt, declared_.size());
  if (static_cast<int64_t>(open_.size()) > limits_.nesting)
    return open_block(BlockKind::else_body, closed.stmt, declared_.size());
  open_.push_back({BlockKind::else_body, closed.stmt, declared_.size(), token_, {}, true});
  if (parse_if()) return true;
  open_.pop_back();
  return false;
}

// Blocks of "else if" whose if is complete.
bool Parser::close_chain() {
  while (!open_.empty() && open_.back().chained) {
    OpenBlock closed = std::move(open_.back());
    open_.pop_back();
    forget_since(closed.scope_mark);
    std::get<Branch>(program_.stmts[closed.stmt.value].node).else_body = std::move(closed.body);
  }
  return true;
}

bool Parser::parse_alloc() {
  Token name;
  if (!parse_name(name, "the buffer's name")) return false;
  if (open_.size() > 1 || statement_seen_) {
    error(DiagCode::misplaced_statement, name,
          "the buffer " + describe(name) + " is allocated after a statement",
          "move the alloc to the top of the kernel");
  }
  if (static_cast<int64_t>(program_.buffers.size()) >= limits_.buffers)
    return limit(DiagCode::limit_nodes, name,
                 "a program has at most " + std::to_string(limits_.buffers) + " buffers",
                 "reuse buffers, or split the program");
  Buffer buffer;
  buffer.name = name.text;
  buffer.location = location(name);
  buffer.kernel = static_cast<int>(program_.kernels.size()) - 1;
  bool ok = expect(":", "and the buffer's scope") && parse_scope(buffer.scope) && parse_dtype(buffer.type) &&
            expect("[", "and the buffer's shape");
  if (ok && !accept("]")) {
    do {
      int64_t extent = 1;
      Token at = token_;
      ok = room_for_rank(buffer.shape.size(), at) &&
           parse_extent(extent, "a constant extent of the buffer",
                        "a tile holds a part of what only the launch knows: loop over the parts, or keep it "
                        "in a tensor");
      if (ok) buffer.shape.push_back(constant(extent, at));
    } while (ok && accept(","));
    ok = ok && expect("]", "or ',' and a further extent");
  }
  in_attributes_ = ok && accept("{");
  if (in_attributes_)
    ok = parse_annotation_list(AnnotationPlace::tile, "a tile", buffer.annotations) &&
         expect("}", "or ',' and a further annotation");
  if (ok) in_attributes_ = false;
  declare(name, SymbolKind::buffer, static_cast<uint32_t>(program_.buffers.size()));
  program_.buffers.push_back(std::move(buffer));
  return ok;
}

bool Parser::parse_scope(MemScope& out) {
  NearestName nearest(token_.text);
  for (MemScope s : kTileScopes) {
    out = s;
    if (accept(scope_name(s))) return true;
    nearest.offer(scope_name(s));
  }
  return expected("the scope 'shared', 'fragment' or 'local'",
                  nearest.hint("global memory comes in through 'tensor' parameters"));
}

bool Parser::room_for_rank(size_t dimensions, const Token& at) {
  if (static_cast<int64_t>(dimensions) < limits_.rank) return true;
  return limit(DiagCode::limit_nodes, at,
               "at most " + std::to_string(limits_.rank) + " dimensions are allowed",
               "fold dimensions together");
}

VarId Parser::add_unseen_var(const Token& name, VarKind kind) {
  Var var;
  var.name = name.text;
  var.kind = kind;
  var.location = location(name);
  program_.vars.push_back(std::move(var));
  return VarId(program_.vars.size() - 1);
}

VarId Parser::add_loop_var(const Token& name, VarKind kind) {
  const VarId id = add_unseen_var(name, kind);
  declare(name, SymbolKind::variable, id.value);
  return id;
}

StmtId Parser::add_statement(const Token& at, std::variant<Loop, Branch, Store, TileOp> node) {
  if (static_cast<int64_t>(program_.stmts.size()) >= limits_.statements) {
    limit(DiagCode::limit_nodes, at,
          "a program has at most " + std::to_string(limits_.statements) + " statements", "split the program");
    return {};
  }
  check_reached(at);
  StmtId id(program_.stmts.size());
  program_.stmts.push_back({std::move(node), location(at)});
  open_.back().body.push_back(id);
  return id;
}

bool Parser::parse_statement() {
  for (LoopKind kind : kSingleVarLoops)
    if (token_.is(loop_kind_name(kind))) return parse_loop(kind);
  if (token_.is(loop_kind_name(LoopKind::parallel))) return parse_parallel();
  if (token_.is("if")) return parse_if();
  if (token_.is("while")) return parse_while();
  if (token_.is("switch")) return parse_switch();
  if (token_.is("break")) return parse_jump(Draft::Jump::break_loop);
  if (token_.is("continue")) return parse_jump(Draft::Jump::next_iteration);
  if (token_.is("return")) return parse_jump(Draft::Jump::leave_kernel);
  if (token_.is("assert")) return parse_assert();
  if (token_.is("print")) return parse_print();
  if (token_.is("else")) return expected("a statement or '}'", "'else' follows only the '}' of an 'if'");
  if (std::optional<OpKind> op = op_from_text(token_.text)) return parse_tile_op(*op);
  if (atomic_from_text(token_.text)) return parse_atomic_store();
  Token name = token_;
  advance();
  if ((name.is("argmax") || name.is("argmin")) && token_.kind == TokenKind::name)
    return parse_arg_reduction(name);
  if ((name.is("sort") || name.is("topk")) && token_.kind == TokenKind::name) return parse_sort(name);
  if (name.is("compress") && token_.kind == TokenKind::name) return parse_compression(name);
  if ((name.is("let") || name.is("var")) && token_.kind == TokenKind::name) return parse_let(name.is("var"));
  if (name.is("label") && token_.kind == TokenKind::name) return parse_label();
  if (name.is("threads") && token_.kind == TokenKind::name) return parse_threads(name);
  if (const Symbol* symbol = find(name.text);
      symbol != nullptr && symbol->kind == SymbolKind::variable && !token_.is("["))
    return parse_assignment(name);
  if (name.is("barrier") && !token_.is("[") && !token_.is("=")) return parse_barrier(name);
  if ((name.is("copy_async") || name.is("copy_bulk")) && token_.kind == TokenKind::name)
    return parse_async_copy(name);
  if (token_.is("[") || token_.is("=")) return parse_store(name);
  NearestName nearest(name.text);
  for (const OpRow& row : op_rows()) nearest.offer(row.text);
  for (LoopKind kind : kSingleVarLoops) nearest.offer(loop_kind_name(kind));
  for (std::string_view word :
       {"parallel", "if",    "alloc",    "let",     "var",        "view",     "argmax", "argmin",
        "sort",     "topk",  "compress", "assert",  "print",      "while",    "break",  "continue",
        "return",   "label", "threads",  "barrier", "copy_async", "copy_bulk"})
    nearest.offer(word);
  for (int kind = 0; kind < kAtomicKinds; ++kind) nearest.offer(atomic_text(static_cast<AtomicKind>(kind)));
  error(DiagCode::unknown_name, name, "expected a statement, found the unknown operation " + describe(name),
        foreign_hint(name.text).empty()
            ? nearest.hint("a statement starts with an op, a loop, 'if', or the buffer it stores to")
            : std::string(foreign_hint(name.text)));
  return false;
}

bool Parser::parse_loop(LoopKind kind) {
  Token at = token_;
  advance();
  Token name;
  Loop loop;
  loop.kind = kind;
  if (!parse_name(name, "the loop variable")) return false;
  size_t mark = declared_.size();
  bool ok = expect("in", "after the loop variable") && parse_bounds(loop);
  ExprId stepped;
  if (ok && token_.is("step")) ok = parse_step(loop, name, stepped);
  if (ok && token_.is("while")) ok = parse_loop_condition(loop);
  if (ok && accept("stages")) ok = parse_constant(loop.num_stages, "the number of stages");
  Annotations annotations;
  ok = ok &&
       parse_with(AnnotationPlace::loop, std::string("a ") + loop_kind_name(kind) + " loop", annotations);
  if (!stepped.valid())
    loop.vars.push_back(add_loop_var(name, VarKind::loop));  // after the bounds: they cannot use it
  if (!ok) return false;
  draft_.loops_in_parallel |= in_parallel();
  StmtId id = add_statement(at, std::move(loop));
  if (!id.valid()) return false;
  program_.stmts[id.value].annotations = std::move(annotations);
  take_label(id);
  if (!open_block(BlockKind::loop, id, mark)) return false;
  if (!stepped.valid()) return true;
  const VarId value = add_loop_var(name, VarKind::loop);
  draft_.temporaries[value] = false;
  return add_assignment(name, value, stepped);
}

// step n: the loop counts its iterations, and its variable is named in each.
bool Parser::parse_step(Loop& loop, const Token& name, ExprId& value) {
  advance();
  const Token at = token_;
  int64_t step = 1;
  if (!parse_constant(step, "the step")) return false;
  if (step < 1) {
    error(DiagCode::bad_attribute, at,
          "a loop has the step " + std::to_string(step) + ", expected at least 1",
          "count upwards, and subtract from the end inside");
    return true;
  }
  if (step == 1 || !loop.begin.valid() || !loop.extents[0].valid()) return true;
  ExprId first = loop.begin;
  if (!program_.exprs.is_const_int(first)) {  // it is taken once
    const VarId begin = add_unseen_var(name, VarKind::loop);
    draft_.temporaries[begin] = false;
    if (!add_assignment(name, begin, first)) return false;
    first = program_.exprs.var(begin);
  }
  const VarId count = add_unseen_var(name, VarKind::loop);
  loop.vars.push_back(count);
  loop.begin = constant(0, at);
  loop.extents[0] = make_ceildiv(loop.extents[0], constant(step, at), at);
  value = make_binary(ExprOp::add, first,
                      make_binary(ExprOp::mul, program_.exprs.var(count), constant(step, at), at), at);
  return value.valid() && loop.extents[0].valid();
}

bool Parser::in_parallel() const {
  return std::any_of(open_.begin(), open_.end(), [&](const OpenBlock& b) {
    const auto* loop = b.kind == BlockKind::loop ? program_.as<Loop>(b.stmt) : nullptr;
    return loop != nullptr && loop->kind == LoopKind::parallel;
  });
}

bool Parser::parse_bounds(Loop& loop) {
  if (!parse_index(loop.begin, "the loop's begin")) return false;
  bool by_extent = token_.is(":+");
  Token at = token_;
  if (!by_extent && !token_.is(".."))
    return expected("'..' and the loop's end, or ':+' and its extent", "write the bounds as 'in 0 .. n'");
  advance();
  ExprId second;
  if (!parse_index(second, by_extent ? "the loop's extent" : "the loop's end")) return false;
  loop.extents.push_back(by_extent ? second : make_binary(ExprOp::sub, second, loop.begin, at));
  return true;
}

bool Parser::parse_parallel() {
  Token at = token_;
  advance();
  const size_t mark = declared_.size();
  Loop loop;
  std::vector<int64_t> extents;
  if (!parse_points(
          at, "a parallel loop",
          "an extent that only the launch knows is cut: of b in a grid, or a serial loop, of "
          "ceildiv(n, 64), parallel i in 64 has the elements b * 64 + i; beyond its end a tensor reads 0 "
          "and drops what is written",
          loop, extents))
    return false;
  Annotations annotations;
  if (!parse_with(AnnotationPlace::op, "a parallel loop", annotations)) return false;
  StmtId id = add_statement(at, std::move(loop));
  if (!id.valid()) return false;
  program_.stmts[id.value].annotations = std::move(annotations);
  take_label(id);
  return open_block(BlockKind::loop, id, mark);
}

bool Parser::parse_if() {
  Token at = token_;
  advance();
  Branch branch;
  Token condition_at = token_;
  if (!parse_expr(branch.condition)) return false;
  if (branch.condition.valid() && !is_bool(program_.exprs.type(branch.condition))) {
    error(DiagCode::dtype_mismatch, condition_at,
          std::string("the condition of an if has type ") +
              dtype_name(program_.exprs.type(branch.condition)) + ", not bool",
          "compare it with something, for example 'if x != 0'");
  }
  StmtId id = add_statement(at, std::move(branch));
  take_label(id);
  return id.valid() && open_block(BlockKind::then_body, id, declared_.size());
}

void Parser::check_rank(BufferId buffer, size_t given, const Token& at) {
  size_t rank = program_.buffer(buffer).shape.size();
  if (rank == given) return;
  error(DiagCode::rank_mismatch, at,
        "buffer " + describe(at) + " has " + std::to_string(rank) + " dimensions, " + std::to_string(given) +
            (given == 1 ? " is given" : " are given"),
        "give one index per dimension");
}

}  // namespace tilegen::ir::text
