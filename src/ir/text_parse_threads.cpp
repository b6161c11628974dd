// Blocks of threads of the text form: threads, barrier, and what lanes give each other.
#include <algorithm>

#include "ir/bulk_copy.h"
#include "ir/copy_groups.h"
#include "ir/draft_threads.h"
#include "ir/lane_exchange.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// The head of a parallel loop: names, "in", and as many constant extents.
bool Parser::parse_points(const Token& at, std::string_view what, std::string_view dynamic, Loop& loop,
                          std::vector<int64_t>& extents) {
  std::vector<Token> names;
  loop.kind = LoopKind::parallel;
  do {
    if (!room_for_rank(names.size(), token_)) return false;
    if (token_.is("("))
      return expected("the loop variable",
                      "no parentheses stand around variables and extents: i, j in 16, 64");
    if (!parse_name(names.emplace_back(), "the loop variable")) return false;
  } while (accept(","));
  for (const Token& name : names) loop.vars.push_back(add_loop_var(name, VarKind::loop));
  if (!expect("in", "or ',' and a further loop variable")) return false;
  loop.begin = constant(0, at);
  do {
    Token extent_at = token_;
    if (!room_for_rank(loop.extents.size(), token_) ||
        !parse_extent(extents.emplace_back(1), "a constant extent of " + std::string(what), dynamic))
      return false;
    loop.extents.push_back(constant(extents.back(), extent_at));
  } while (accept(","));
  if (loop.extents.size() == loop.vars.size()) return true;
  error(DiagCode::rank_mismatch, at,
        std::string(what) + " with " + std::to_string(loop.vars.size()) + " variables has " +
            std::to_string(loop.extents.size()) + " extents",
        "give one extent per variable");
  // What is read after it finds one for each.
  extents.resize(loop.vars.size(), 1);
  loop.extents.resize(loop.vars.size(), constant(1, at));
  return true;
}

// threads warp, lane in 4, 32 { ... }
bool Parser::parse_threads(const Token& at) {
  const size_t mark = declared_.size();
  Loop loop;
  std::vector<int64_t> extents;
  if (!parse_points(at, "a block of threads", "the extents multiply to the kernel's threads", loop, extents))
    return false;
  const auto wrong = threads_refusal(program_, extents, open_statements());
  if (wrong) error(wrong->code, at, wrong->message, wrong->hint);
  const StmtId id = add_statement(at, std::move(loop));
  if (!id.valid()) return false;
  const bool positive = std::all_of(extents.begin(), extents.end(), [](int64_t n) { return n > 0; });
  if (positive && !wrong) program_.stmts[id.value].annotations = in_thread_order(extents, location(at));
  draft_.threads.insert(id);
  return open_block(BlockKind::loop, id, mark);
}

// The block of threads around, or nothing.
const Loop* Parser::threads_around() const {
  for (const OpenBlock& b : open_)
    if (b.kind == BlockKind::loop && draft_.threads.contains(b.stmt)) return program_.as<Loop>(b.stmt);
  return nullptr;
}

bool Parser::parse_barrier(const Token& word) {
  if (threads_around() == nullptr) {
    error(
        DiagCode::misplaced_statement, word, "barrier stands outside of a block of threads",
        "elsewhere operations await each other by themselves; what threads do is written in threads ... { }");
    return true;
  }
  const StmtId id = add_statement(word, Branch{});
  if (id.valid()) draft_.barriers.insert(id);
  return id.valid();
}

// copy_async X[row, at :+ 4] -> tile[place :+ 4]; an index without an extent is one element's. copy_bulk is
// of boxes.
bool Parser::parse_async_copy(const Token& word) {
  const std::string name(word.text);
  const bool bulk = word.is("copy_bulk");
  Region from, to;
  if (!parse_thread_region(from, "what " + name + " copies") ||
      !expect("->", "and where " + name + " copies to") ||
      !parse_thread_region(to, "where " + name + " copies to"))
    return false;
  if (threads_around() == nullptr) {
    error(DiagCode::misplaced_statement, word, name + " stands outside of a block of threads",
          "copy a box of the tensor with copy, which moves it asynchronously where that pays");
    return true;
  }
  const bool named = from.buffer.valid() && to.buffer.valid() &&
                     from.offsets.size() == program_.buffer(from.buffer).shape.size() &&
                     to.offsets.size() == program_.buffer(to.buffer).shape.size();
  if (!named) return true;
  if (const auto wrong =
          bulk ? bulk_copy_refusal(program_, from, to) : async_copy_refusal(program_, from, to)) {
    error(wrong->code, word, wrong->message, wrong->hint);
    return true;
  }
  if (static_cast<int64_t>(program_.stmts.size()) + 2 > limits_.statements)
    return limit(DiagCode::limit_nodes, word,
                 "a program has at most " + std::to_string(limits_.statements) + " statements",
                 "split the program");
  for (const Region* r : {&from, &to})
    for (ExprId e : r->offsets)
      if (!e.valid() || !room_for_node(program_.exprs[e].depth + 1, word)) return true;
  check_reached(word);
  const auto add = bulk ? add_bulk_copy : add_async_copy;
  take_label(add(program_, draft_, from, to, location(word), open_.back().body));
  return true;
}

bool Parser::parse_thread_region(Region& region, std::string_view what) {
  Token name;
  if (!parse_name(name, what)) return false;
  region.buffer = find_buffer(name);
  if (!expect("[", "and the indices of " + std::string(what))) return false;
  do {
    if (!room_for_rank(region.offsets.size(), token_) ||
        !parse_index(region.offsets.emplace_back(), "an index"))
      return false;
    region.extents.push_back(1);
    if (accept(":+") && !parse_extent(region.extents.back(), "a constant extent of the copy")) return false;
  } while (accept(","));
  if (region.buffer.valid()) check_rank(region.buffer, region.offsets.size(), name);
  return expect("]", "or ',' and a further index");
}

ExprId Parser::make_id_call(IdOp op, const Token& at) {
  if (open_.empty() || program_.kernels.empty()) {
    error(DiagCode::misplaced_statement, at, describe(at) + " stands outside of a kernel",
          "ask for it in the body of one");
    return {};
  }
  uint32_t depth = 1;
  if (op == IdOp::block)
    for (ExprId extent : program_.kernels.back().grid) {
      if (!extent.valid()) return {};
      depth = std::max<uint32_t>(depth, program_.exprs[extent].depth);
    }
  if (!room_for_node(depth + kIdDepth, at)) return {};
  const Loop* around = threads_around();
  const Loop threads = around ? *around : Loop{};
  auto made = make_id(program_, op, around ? &threads : nullptr);
  if (const auto* wrong = std::get_if<Diagnostic>(&made)) {
    error(wrong->code, at, wrong->message, wrong->hint);
    return {};
  }
  return std::get<ExprId>(made);
}

// A value of another lane: statements in front of the one that is being read.
ExprId Parser::make_lane_call(std::string_view name, std::span<const ExprId> args, const Token& at) {
  const LaneOp op = *lane_op_from_text(name);
  const Loop* threads = threads_around();
  if (threads == nullptr) {
    error(DiagCode::misplaced_statement, at, describe(at) + " stands outside of a block of threads",
          "write what the lanes do in threads warp, lane in 4, 32 { }");
    return {};
  }
  for (ExprId e : args)
    if (!e.valid() || !room_for_node(program_.exprs[e].depth + 4, at)) return {};
  if (static_cast<int64_t>(program_.stmts.size()) + kMaxLaneStatements > limits_.statements) {
    limit(DiagCode::limit_nodes, at,
          "a program has at most " + std::to_string(limits_.statements) + " statements", "split the program");
    return {};
  }
  check_reached(at);
  const LaneCall call{op, args[0], is_vote(op) ? ExprId() : args[1]};
  const Loop of = *threads;
  auto made = add_lane_call(program_, draft_, of, call, location(at), open_.back().body);
  if (const auto* wrong = std::get_if<Diagnostic>(&made)) {
    error(wrong->code, at, wrong->message, wrong->hint);
    return {};
  }
  return std::get<ExprId>(made);
}

}  // namespace tilegen::ir::text
