// Operations that are made of other statements: argmax and argmin, sort and topk, compress, and reductions
// and scans by a function of the program.
#include <algorithm>

#include "ir/arg_reduction.h"
#include "ir/atomic_fetch.h"
#include "ir/carried_scan.h"
#include "ir/compress.h"
#include "ir/op_kinds.h"
#include "ir/sort.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// The operation may stand here; `usable`: its regions are.
bool Parser::begins_made(const Token& word, std::initializer_list<const Region*> regions, int64_t statements,
                         bool& usable) {
  usable = false;
  for (const Region* r : regions)
    if (!r->buffer.valid() || r->offsets.size() != program_.buffer(r->buffer).shape.size()) return true;
  if (in_parallel()) {
    error(DiagCode::misplaced_statement, word, std::string(word.text) + " stands inside a parallel loop",
          "move it out of the loop; a parallel loop holds no tile operations");
    return true;
  }
  check_reached(word);
  if (static_cast<int64_t>(program_.stmts.size()) + statements > limits_.statements ||
      static_cast<int64_t>(program_.buffers.size()) >= limits_.buffers)
    return limit(DiagCode::limit_nodes, word,
                 "a program has at most " + std::to_string(limits_.statements) + " statements and " +
                     std::to_string(limits_.buffers) + " buffers",
                 "split the program");
  if (!room_for_node(1, word)) return false;
  usable = true;
  return true;
}

// argmax src -> value, index {axis = 1}
bool Parser::parse_arg_reduction(const Token& word) {
  const std::string of = "of " + std::string(word.text);
  ArgReduction what;
  what.largest = word.is("argmax");
  if (!parse_region(what.src, "the source " + of) ||
      !expect("->", "and what " + std::string(word.text) + " writes") ||
      !parse_region(what.value, "the value " + of) || !expect(",", "and the place " + of) ||
      !parse_region(what.index, "the place " + of) || !parse_word_attributes(word, what.axis, {}))
    return false;
  bool usable = false;
  constexpr int64_t kStatements = 4;
  if (!begins_made(word, {&what.src, &what.value, &what.index}, kStatements, usable)) return false;
  if (!usable) return true;
  if (auto wrong = add_arg_reduction(program_, what, location(word), open_.back().body))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

// sort src -> dst [, index] {axis = 1, descending}; topk, whose flag is smallest
bool Parser::parse_sort(const Token& word) {
  const std::string of = "of " + std::string(word.text);
  Sort what;
  what.first_ones = word.is("topk");
  bool flagged = false;
  const WordFlag flag{what.first_ones ? "smallest" : "descending", &flagged};
  if (!parse_region(what.src, "the source " + of) ||
      !expect("->", "and what " + std::string(word.text) + " writes") ||
      !parse_region(what.dst, "the elements " + of))
    return false;
  if (accept(",") && !parse_region(what.index.emplace(), "the places " + of)) return false;
  if (!parse_word_attributes(word, what.axis, std::span(&flag, 1))) return false;
  what.descending = flagged != what.first_ones;
  bool usable = false;
  if (!begins_made(word, {&what.src, &what.dst, what.index ? &*what.index : &what.dst}, 1, usable))
    return false;
  if (!usable) return true;
  if (auto wrong = add_sort(program_, what, location(word), open_.back().body, limits_))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

// compress src -> values, meta
bool Parser::parse_compression(const Token& word) {
  Compression what;
  if (!parse_region(what.src, "the source of compress") || !expect("->", "and what compress writes") ||
      !parse_region(what.values, "the values of compress") || !expect(",", "and their places") ||
      !parse_region(what.meta, "the places of compress"))
    return false;
  bool usable = false;
  if (!begins_made(word, {&what.src, &what.values, &what.meta}, 1, usable)) return false;
  if (!usable) return true;
  if (auto wrong = add_compression(program_, what, location(word), open_.back().body, limits_))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

// atomic src -> dst, old {kind = exchange}, behind the comma
bool Parser::parse_atomic_fetch(const Token& word, const OpRow& row, TileOp op) {
  Region old;
  if (!parse_region(old, "the old values of atomic")) return false;
  Annotations annotations;
  in_attributes_ = accept("{");
  if (in_attributes_ && !parse_attributes(row, op, annotations)) return false;
  in_attributes_ = false;
  if (!annotations.empty())
    error(DiagCode::misplaced_statement, word,
          "atomic with old values is made of parallel loops, which no '" + annotations.front().key +
              "' is given to",
          "leave the annotation out, or write the loop: old[i] = atomic_add(Y[i], x[i])");
  AtomicFetch what{std::move(op.operands[0]), std::move(op.operands[1]), std::move(old),
                   static_cast<AtomicKind>(op.attrs[atomic_attr::kind])};
  bool usable = false;
  constexpr int64_t kStatements = 4;
  if (!begins_made(word, {&what.src, &what.dst, &what.old}, kStatements, usable)) return false;
  if (!usable) return true;
  if (auto wrong = add_atomic_fetch(program_, what, location(word), open_.back().body, limits_))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

// {axis = 1, flag}, any of them
bool Parser::parse_word_attributes(const Token& word, int64_t& axis, std::span<const WordFlag> flags) {
  in_attributes_ = accept("{");
  if (!in_attributes_) return true;
  do {
    const auto flag =
        std::find_if(flags.begin(), flags.end(), [&](const WordFlag& f) { return token_.is(f.name); });
    if (flag != flags.end()) {
      advance();
      *flag->set = true;
    } else if (token_.is("axis")) {
      advance();
      if (!expect("=", "and the axis") || !parse_int(axis, "the axis")) return false;
    } else {
      std::string all;
      for (const WordFlag& f : flags) all += (&f == &flags.back() ? " and " : ", ") + std::string(f.name);
      return expected("an attribute of " + std::string(word.text),
                      all.empty() ? "axis is the one attribute there is" : "the attributes are axis" + all);
    }
  } while (accept(","));
  if (!expect("}", "to close the attributes")) return false;
  in_attributes_ = false;
  return true;
}

bool Parser::parse_region_list(std::vector<Region>& out, std::string_view what) {
  do {
    if (!room_for_rank(out.size(), token_) || !parse_region(out.emplace_back(), what)) return false;
  } while (accept(","));
  return true;
}

// "by" and a name: what is assigned or stored has no name behind it.
bool Parser::begins_combination() { return token_.is("by") && Lexer(lexer_).next().kind == TokenKind::name; }

// from 0, 1: the group in front of all, a value of the type of each source
bool Parser::parse_first_group(Combination& what) {
  const auto begins_value = [](const Token& t) {
    return t.kind == TokenKind::number || t.kind == TokenKind::name || t.is("(") || t.is("-");
  };
  if (!token_.is("from") || !begins_value(Lexer(lexer_).next())) return true;  // a tile may have that name
  advance();
  do {
    const size_t i = what.first.size();
    const BufferId of = i < what.src.size() ? what.src[i].buffer : BufferId();
    const DType type = of.valid() ? program_.buffer(of).type : DType::none;
    if (!room_for_rank(i, token_) || !parse_expr(what.first.emplace_back(), kAny, type)) return false;
  } while (accept(","));
  return true;
}

// "carry" and a tile.
bool Parser::begins_carry() { return token_.is("carry") && Lexer(lexer_).next().kind == TokenKind::name; }

bool Parser::parse_carry(std::vector<Region>& carry) {
  if (!begins_carry()) return true;
  advance();
  return parse_region_list(carry, "what scan carries");
}

// scan x -> y carry c {kind = sum, axis = 1, reverse, exclusive}
bool Parser::parse_carried_scan(const Token& word, const OpRow& row, TileOp op) {
  std::vector<Region> carry;
  if (!parse_carry(carry)) return false;
  Annotations annotations;
  in_attributes_ = accept("{");
  if (in_attributes_ && !parse_attributes(row, op, annotations)) return false;
  in_attributes_ = false;
  if (!annotations.empty()) {
    error(DiagCode::misplaced_statement, word, "annotations stand at what is made of several statements",
          "carry the value by statements of your own: scan, and a parallel loop that adds it");
    return true;
  }
  const Region src = op.operands[0], dst = op.operands[1];
  CarriedScan what = carried_scan(src, dst, carry[0], std::move(op));
  what.carry = std::move(carry);
  return add_carried(word, std::move(what));
}

bool Parser::add_carried(const Token& word, CarriedScan what) {
  bool usable = false;
  for (const auto* regions : {&what.scan.src, &what.scan.dst, &what.carry})
    for (const Region& r : *regions)
      if (const bool goes_on = begins_made(word, {&r}, 1, usable); !usable) return goes_on;
  if (auto wrong = add_carried_scan(program_, std::move(what), location(word), open_.back().body, limits_))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

// reduce x, y -> m, s by f {axis = 1, accumulate}; scan, with reverse, exclusive, and from 0, 1 or carry c, d
bool Parser::parse_combination(const Token& word, const OpRow& row, std::vector<Region> src,
                               std::vector<Region> dst) {
  Combination what;
  what.src = std::move(src);
  what.dst = std::move(dst);
  what.scan = row.kind == OpKind::scan;
  advance();
  const Token name = token_;
  advance();
  std::vector<Region> carry;
  if (!parse_first_group(what) || (what.scan && what.first.empty() && !parse_carry(carry))) return false;
  const WordFlag scan_flags[] = {{"reverse", &what.reverse}, {"exclusive", &what.exclusive}};
  const WordFlag reduce_flags[] = {{"accumulate", &what.accumulate}};
  const std::span<const WordFlag> flags =
      what.scan ? std::span<const WordFlag>(scan_flags) : std::span<const WordFlag>(reduce_flags);
  if (!parse_word_attributes(word, what.axis, flags)) return false;
  const auto f = functions_.find(name.text);
  if (f == functions_.end()) {
    error(DiagCode::unknown_name, name, "there is no function " + describe(name),
          "declare it before the kernels: fn " + std::string(name.text) +
              "(a: f32, b: f32, c: f32, d: f32) -> (f32, f32) { ... return x, y }");
    return true;
  }
  const size_t half = f->second.parameters.size() / 2;
  const auto middle = f->second.parameters.begin() + static_cast<ptrdiff_t>(half);
  what.by.left.assign(f->second.parameters.begin(), middle);
  what.by.right.assign(middle, f->second.parameters.end());
  what.by.results = f->second.values;
  for (const auto* values : {&what.by.results, &what.first})
    for (ExprId value : *values)
      if (!value.valid()) return true;
  if (!carry.empty()) return add_carried(word, {std::move(what), std::move(carry)});
  bool usable = false;
  for (const auto* regions : {&what.src, &what.dst})
    for (const Region& r : *regions)
      if (const bool goes_on = begins_made(word, {&r}, 1, usable); !usable) return goes_on;
  if (auto wrong = add_combination(program_, what, location(word), open_.back().body, limits_))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

}  // namespace tilegen::ir::text
