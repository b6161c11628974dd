#include "ir/packed_lanes.h"

#include <algorithm>

#include "ir/draft_exprs.h"

namespace tilegen::ir {

ExprId LaneExprs::rewrite_var(const ExprNode& n) {
  ExprPool& e = *to_;
  return n.var() == var_ ? e.add(e.mul(e.var(var_), of_), lane_) : e.var(n.var(), n.type);
}

// Digits of the variable that lanes do not reach are the same for all of them.
ExprId LaneExprs::value(ExprId root) {
  ExprPool& e = *to_;
  for (ExprId id : parts_of(e, root, prepared_)) {
    const ExprNode n = e[id];
    int64_t by = 0;
    const bool is_digit = (n.op == ExprOp::floordiv || n.op == ExprOp::floormod) && n.type == DType::i64;
    if (!is_digit || !e.is_const_int(n.b, &by) || by <= 0 || by % of_ != 0) continue;
    const PackedIndex::Split place = PackedIndex(p_).split(rewrite(n.a), of_);
    if (!e.is_const_int(place.rest)) continue;
    const ExprId over = e.const_int(by / of_);
    replace(id, n.op == ExprOp::floordiv ? e.floordiv(place.times, over)
                                         : e.add(e.mul(e.floormod(place.times, over), of_), place.rest));
  }
  return rewrite(root);
}

namespace {

// Lanes of a byte name its elements, each once.
bool writes_bytes(Program& p, int64_t in_byte, const Store& store, std::vector<LaneExprs>& lanes) {
  PackedIndex index(p);
  int64_t named = 0;  // elements of the byte, as bits
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lane % static_cast<size_t>(in_byte) == 0) named = 0;
    LaneExprs& first = lanes[lane - lane % static_cast<size_t>(in_byte)];
    for (size_t d = 0; d + 1 < store.indices.size(); ++d)
      if (lanes[lane].value(store.indices[d]) != first.value(store.indices[d])) return false;
    const PackedIndex::Split at = index.split(lanes[lane].value(store.indices.back()), in_byte);
    const PackedIndex::Split byte = index.split(first.value(store.indices.back()), in_byte);
    int64_t element = 0;
    if (at.times != byte.times || !p.exprs.is_const_int(at.rest, &element)) return false;
    if ((named >> element & 1) != 0) return false;
    named |= int64_t{1} << element;
  }
  return true;
}

}  // namespace

bool lanes_write_bytes(Program& p, const PackedBuffers& buffers, const Block& body,
                       std::vector<LaneExprs>& lanes) {
  for (StmtId s : body) {
    if (const auto* branch = p.as<Branch>(s)) {
      for (LaneExprs& lane : lanes)
        if (lane.value(branch->condition) != lanes[0].value(branch->condition)) return false;
      if (!lanes_write_bytes(p, buffers, branch->then_body, lanes) ||
          !lanes_write_bytes(p, buffers, branch->else_body, lanes))
        return false;
    } else if (const auto* store = p.as<Store>(s)) {
      const auto b = buffers.find(store->buffer);
      if (b != buffers.end() && b->second.in_byte > 1 && !writes_bytes(p, b->second.in_byte, *store, lanes))
        return false;
    } else {
      return false;
    }
  }
  return true;
}

bool writes_own_bytes(Program& p, const PackedBuffers& buffers, const Block& body) {
  PackedIndex index(p);
  DraftExprs exprs(p);
  for (size_t i = 0; i < body.size(); ++i) {
    if (const auto* branch = p.as<Branch>(body[i])) {
      if (!writes_own_bytes(p, buffers, branch->then_body) ||
          !writes_own_bytes(p, buffers, branch->else_body))
        return false;
      continue;
    }
    const auto* first = p.as<Store>(body[i]);
    if (!first) return false;
    const auto b = buffers.find(first->buffer);
    if (b == buffers.end() || b->second.in_byte == 1) continue;
    const auto in_byte = static_cast<size_t>(b->second.in_byte);
    if (body.size() - i < in_byte) return false;
    const PackedIndex::Split byte = index.split(first->indices.back(), b->second.in_byte);
    for (size_t at = 0; at < in_byte; ++at) {
      const auto* store = p.as<Store>(body[i + at]);
      if (!store || store->buffer != first->buffer ||
          !std::equal(store->indices.begin(), store->indices.end() - 1, first->indices.begin()))
        return false;
      const PackedIndex::Split place = index.split(store->indices.back(), b->second.in_byte);
      if (place.times != byte.times || !index.is(place.rest, static_cast<int64_t>(at))) return false;
      if (at > 0 && exprs.reads(store->value).contains(store->buffer)) return false;
    }
    i += in_byte - 1;
  }
  return true;
}

}  // namespace tilegen::ir
