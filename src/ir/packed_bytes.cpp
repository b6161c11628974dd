// Parallel loops that write elements which share bytes: who writes one writes the bytes around it.
#include <algorithm>
#include <utility>

#include "ir/packed_resolver.h"
#include "ir/store_parts.h"

namespace tilegen::ir {

int PackedTypes::shared_elements(const Block& body) const {
  int most = 1;
  for_each_statement(p_, body, [&](StmtId s, int) {
    if (const auto* store = p_.as<Store>(s); store && packed(store->buffer))
      most = std::max(most, packed(store->buffer)->in_byte);
  });
  return most;
}

void PackedTypes::write_bytes(StmtId s) {
  const Loop written = *p_.as<Loop>(s);
  const int of = shared_elements(written.body);
  for (size_t v = written.vars.size(); v-- > 0;) {
    int64_t extent = 0;
    if (!p_.exprs.is_const_int(written.extents[v], &extent) || extent % of != 0) continue;
    std::vector<LaneExprs> lanes;
    for (int lane = 0; lane < of; ++lane) lanes.emplace_back(p_, written.vars[v], of, lane);
    if (!lanes_write_bytes(p_, buffers_, written.body, lanes)) continue;
    auto& loop = std::get<Loop>(p_.stmts[s.value].node);
    loop.extents[v] = p_.exprs.const_int(extent / of);
    Block body = loop.body;
    merge(body, lanes);
    std::get<Loop>(p_.stmts[s.value].node).body = std::move(body);
    return;
  }
  if (writes_own_bytes(p_, buffers_, written.body)) {
    Block body = written.body;
    join_stores(body);
    std::get<Loop>(p_.stmts[s.value].node).body = std::move(body);
    return;
  }
  std::string name;
  for_each_statement(p_, written.body, [&](StmtId inner, int) {
    const auto* store = p_.as<Store>(inner);
    if (name.empty() && store && shares_bytes(store->buffer)) name = p_.buffer(store->buffer).name;
  });
  error(DiagCode::misplaced_statement,
        "a parallel loop writes elements of '" + name + "', of which a byte holds " + std::to_string(of) +
            ", and no iterations of one of its variables write exactly those of a byte under the same ifs",
        "write '" + name + "' at [..., e + j] where the extent of j and e are multiples of " +
            std::to_string(of) +
            ", without an if on j; or write a fragment or u8 tile, and copy or combine it");
}

void PackedTypes::merge(Block& body, std::vector<LaneExprs>& lanes) {
  Block out;
  for (StmtId s : body) {
    location_ = p_.stmts[s.value].location;
    merged_.resize(std::max(merged_.size(), p_.stmts.size() + 1), false);
    merged_[s.value] = true;
    if (const auto* branch = p_.as<Branch>(s)) {
      Branch b = *branch;
      b.condition = exprs_.value(lanes[0].value(b.condition));
      merge(b.then_body, lanes), merge(b.else_body, lanes);
      p_.stmts[s.value].node = std::move(b);
      out.push_back(s);
    } else {
      merge_store(s, lanes, out);
    }
  }
  body = std::move(out);
}

void PackedTypes::merge_store(StmtId s, std::vector<LaneExprs>& lanes, Block& out) {
  const Store written = *p_.as<Store>(s);
  const int in_byte = shares_bytes(written.buffer) ? packed(written.buffer)->in_byte : 1;
  if (packed(written.buffer) && !takes(written.buffer, written.value)) return;
  bool kept = false;
  const auto put = [&](Store made) {
    if (std::exchange(kept, true)) return out.push_back(add(std::move(made)));
    p_.stmts[s.value].node = std::move(made);
    out.push_back(s);
  };
  for (size_t lane = 0; lane < lanes.size(); lane += static_cast<size_t>(in_byte)) {
    Store made = written;
    visit_exprs(made, [&](ExprId& e) { e = lanes[lane].value(e); });
    if (in_byte == 1) {
      plain_store(made);
      put(std::move(made));
      continue;
    }
    std::vector<ExprId> values;
    for (int at = 0; at < in_byte; ++at)
      values.push_back(lanes[lane + static_cast<size_t>(at)].value(written.value));
    made = byte_of(std::move(made), values);
    put(std::move(made));
  }
}

// An iteration's own stores to a byte as one.
void PackedTypes::join_stores(Block& body) {
  Block out;
  for (size_t i = 0; i < body.size(); ++i) {
    const StmtId s = body[i];
    location_ = p_.stmts[s.value].location;
    merged_.resize(std::max(merged_.size(), p_.stmts.size()), false);
    merged_[s.value] = true;
    out.push_back(s);
    if (const auto* branch = p_.as<Branch>(s)) {
      Branch b = *branch;
      b.condition = exprs_.value(b.condition);
      join_stores(b.then_body), join_stores(b.else_body);
      p_.stmts[s.value].node = std::move(b);
      continue;
    }
    Store store = *p_.as<Store>(s);
    if (!shares_bytes(store.buffer)) {
      plain_store(store);
    } else {
      std::vector<ExprId> values;
      for (int at = 0; at < packed(store.buffer)->in_byte; ++at) {
        const StmtId part = body[i + static_cast<size_t>(at)];
        merged_[part.value] = true;
        if (!takes(store.buffer, p_.as<Store>(part)->value)) return;
        values.push_back(p_.as<Store>(part)->value);
      }
      i += values.size() - 1;
      store = byte_of(std::move(store), values);
    }
    p_.stmts[s.value].node = std::move(store);
  }
  body = std::move(out);
}

Store PackedTypes::byte_of(Store first, std::span<const ExprId> values) {
  ExprPool& e = p_.exprs;
  ExprId byte;
  for (size_t at = 0; at < values.size(); ++at) {
    const int64_t bits = static_cast<int64_t>(at) * dtype_bits(packed(first.buffer)->type);
    const ExprId placed = e.binary(ExprOp::shl, exprs_.code(values[at]), e.const_int(bits, DType::i32));
    byte = byte.valid() ? e.binary(ExprOp::bit_or, byte, placed) : placed;
  }
  first.value = e.cast(DType::u8, byte);
  first.indices.back() = index_.split(first.indices.back(), packed(first.buffer)->in_byte).times;
  for (ExprId& index : first.indices) exprs_.move(index);
  return first;
}

}  // namespace tilegen::ir
