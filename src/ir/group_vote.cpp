#include "ir/group_vote.h"

#include <algorithm>
#include <bit>

namespace tilegen::ir {
namespace {

bool is_test(ExprOp op) {
  return op == ExprOp::eq || op == ExprOp::ne || op == ExprOp::lt || op == ExprOp::le;
}

bool is_zero(const ExprPool& e, ExprId id) {
  int64_t value = 1;
  return id.valid() && e.is_const_int(id, &value) && value == 0;
}

// One lane's part: select(test of its element, its bit, 0).
struct Part {
  int64_t lane = -1;
  ExprId load, other, test;
  bool load_first = true;
};

std::optional<Part> part_of(const ExprPool& e, ExprId id) {
  const ExprNode& chosen = e[id];
  int64_t bit = 0;
  if (chosen.op != ExprOp::select || !is_zero(e, chosen.c) || !e.is_const_int(chosen.b, &bit))
    return std::nullopt;
  const auto word = static_cast<uint32_t>(bit);
  const ExprNode& test = e[chosen.a];
  if (!std::has_single_bit(word) || !is_test(test.op)) return std::nullopt;
  Part part{std::countr_zero(word), {}, {}, chosen.a};
  for (const bool first : {true, false}) {
    const ExprId load = first ? test.a : test.b;
    int64_t lane = -1;
    if (e[load].op != ExprOp::load || e.indices(load).empty()) continue;
    if (!e.is_const_int(e.indices(load).back(), &lane) || lane != part.lane) continue;
    part.load = load, part.other = first ? test.b : test.a, part.load_first = first;
    return part;
  }
  return std::nullopt;
}

bool same_group(const ExprPool& e, ExprId a, ExprId b) {
  const auto x = e.indices(a), y = e.indices(b);
  return e[a].object == e[b].object && x.size() == y.size() && std::equal(x.begin(), x.end() - 1, y.begin());
}

}  // namespace

ExprId make_group_vote(ExprPool& e, VoteKind kind, int64_t lanes, const std::function<ExprId(int64_t)>& given,
                       ExprId own) {
  std::vector<ExprId> parts;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const ExprId element = given(lane);
    const ExprId test = kind == VoteKind::match
                            ? e.binary(ExprOp::eq, element, own)
                            : e.binary(ExprOp::ne, element, e.const_int(0, e.type(element)));
    parts.push_back(e.select(test, e.const_int(int64_t{1} << lane, DType::u32), e.const_int(0, DType::u32)));
  }
  while (parts.size() > 1) {
    std::vector<ExprId> pairs;
    for (size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(e.binary(ExprOp::bit_or, parts[i], parts[i + 1]));
    parts = std::move(pairs);
  }
  return kind == VoteKind::any ? e.binary(ExprOp::ne, parts[0], e.const_int(0, DType::u32)) : parts[0];
}

std::optional<GroupVote> find_group_vote(const ExprPool& e, ExprId value) {
  GroupVote vote;
  ExprId word = value;
  if (const ExprNode& n = e[value]; n.op == ExprOp::ne && is_zero(e, n.b)) {
    vote.kind = VoteKind::any;
    word = n.a;
  }
  if (e[word].op != ExprOp::bit_or || e.type(word) != DType::u32) return std::nullopt;
  std::vector<ExprId> todo{word}, leaves;
  while (!todo.empty()) {
    const ExprId at = todo.back();
    todo.pop_back();
    const ExprNode& n = e[at];
    if (n.op == ExprOp::bit_or)
      todo.insert(todo.end(), {n.b, n.a});
    else
      leaves.push_back(at);
    if (todo.size() + leaves.size() > static_cast<size_t>(kMaxLanes)) return std::nullopt;
  }
  if (!has_lanes(static_cast<int64_t>(leaves.size()))) return std::nullopt;
  std::optional<Part> first;
  uint64_t lanes = 0;
  for (const ExprId leaf : leaves) {
    const auto part = part_of(e, leaf);
    if (!part) return std::nullopt;
    lanes |= uint64_t{1} << part->lane;
    if (!first) first = part;
    if (!same_group(e, part->load, first->load) || part->other != first->other ||
        part->load_first != first->load_first || e[part->test].op != e[first->test].op)
      return std::nullopt;
    if (part->lane == 0) vote.first = part->load, vote.test = part->test;
  }
  vote.lanes = static_cast<int64_t>(leaves.size());
  if (lanes != (uint64_t{1} << leaves.size()) - 1) return std::nullopt;
  const ExprNode& other = e[first->other];
  if (other.op == ExprOp::const_int || other.op == ExprOp::const_float) return vote;
  if (vote.kind != VoteKind::ballot || e[vote.test].op != ExprOp::eq || other.op != ExprOp::load ||
      !is_integer(other.type) || !same_group(e, first->other, vote.first) ||
      e[e.indices(first->other).back()].op != ExprOp::var)
    return std::nullopt;
  vote.kind = VoteKind::match;
  vote.own = first->other;
  return vote;
}

ExprId test_of(ExprPool& to, const ExprPool& from, const GroupVote& vote, ExprId element) {
  const ExprNode test = from[vote.test];
  const auto side = [&](ExprId id) {
    const ExprNode n = from[id];
    if (n.op == ExprOp::const_int) return to.const_int(n.imm, n.type);
    return n.op == ExprOp::const_float ? to.const_float(n.float_value(), n.type) : element;
  };
  return to.binary(test.op, side(test.a), side(test.b));
}

}  // namespace tilegen::ir
