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
  const int of = shared_elements(p_.as<Loop>(s)->body);
  merged_.resize(std::max(merged_.size(), p_.stmts.size()), false);
  for_each_statement(p_, p_.as<Loop>(s)->body, [&](StmtId inner, int) { merged_[inner.value] = true; });
  if (write_whole(s, of) || write_parts(s, of)) return;
  const Block selects = with_selects(p_.as<Loop>(s)->body);
  const Block written = std::exchange(std::get<Loop>(p_.stmts[s.value].node).body, selects);
  if (write_whole(s, of) || write_tensor_parts(s)) return;
  refuse_parts(s, written, of);
}

// Iterations, or those of a byte as one, write all of its elements.
bool PackedTypes::write_whole(StmtId s, int of) {
  const Loop written = *p_.as<Loop>(s);
  const bool of_threads = is_of_threads(s);
  for (size_t v = written.vars.size(); v-- > 0 && !of_threads;) {
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
    return true;
  }
  if (!writes_own_bytes(p_, buffers_, written.body)) return false;
  Block body = written.body;
  join_stores(body);
  std::get<Loop>(p_.stmts[s.value].node).body = std::move(body);
  return true;
}

// Its points are run by threads of their numbers.
bool PackedTypes::is_of_threads(StmtId s) const {
  const auto& annotations = p_.stmts[s.value].annotations;
  return std::any_of(annotations.begin(), annotations.end(),
                     [](const Annotation& a) { return a.key == "iteration"; });
}

void PackedTypes::refuse_parts(StmtId s, const Block& written, int of) {
  const TileOp* inside = nullptr;
  for_each_statement(p_, written, [&](StmtId inner, int) {
    const auto* op = p_.as<TileOp>(inner);
    if (op && !inside) inside = op, location_ = p_.stmts[inner.value].location;
  });
  if (inside)
    return error(DiagCode::misplaced_statement,
                 std::string(op_row(inside->kind).text) + " stands inside a parallel loop",
                 "move it out of the loop; a parallel loop holds no tile operations");
  location_ = p_.stmts[s.value].location;
  BufferId tile;
  for_each_statement(p_, written, [&](StmtId inner, int) {
    const auto* store = p_.as<Store>(inner);
    if (!store || !shares_bytes(store->buffer)) return;
    if (!tile.valid() || p_.buffer(store->buffer).scope == MemScope::global) tile = store->buffer;
  });
  const std::string name = p_.buffer(tile).name, parts = std::to_string(of);
  const std::string what = " elements of '" + name + "', of which a byte holds " + parts;
  if (p_.buffer(tile).scope == MemScope::global && is_of_threads(s))
    return error(DiagCode::misplaced_statement,
                 "threads write" + what + ", and other threads may write the rest",
                 "let a thread write the elements of whole bytes, unroll e in 0 .. " + parts + " { " + name +
                     "[..., " + parts +
                     " * t + e] = ... }; or put them into a shared tile, and write them in "
                     "a parallel loop behind a barrier");
  if (p_.buffer(tile).scope == MemScope::global)
    return error(
        DiagCode::misplaced_statement,
        "a parallel loop writes" + what + ", in parts, and " +
            (reads_written(written) ? "reads what it writes" : "has other loops or stores in it"),
        "put the values into a fragment in a loop of its own, and write '" + name +
            "' in another; or write it at [..., e + j] where the extent of j and e are multiples of " +
            parts);
  if (is_of_threads(s))
    return error(DiagCode::misplaced_statement,
                 "threads write" + what + ", and a byte is not seen to be of one thread",
                 "let a thread write the elements of its own bytes, unroll e in 0 .. " + parts + " { " +
                     name + "[..., " + parts +
                     " * t + e] = ... }, or let all write a u8 tile, and one thread put the "
                     "elements of a byte together behind a barrier");
  error(DiagCode::misplaced_statement,
        "iterations of a parallel loop write" + what + ", and a byte is not seen to be of one iteration",
        "write '" + name +
            "' at indices that loop variables, constants and names of the block make: [..., e + "
            "j] where the extent of j is a multiple of " +
            parts + "; or write a fragment or u8 tile, and copy or combine it");
}

// if c { q[j] = a } else { q[j] = b } as one store.
Block PackedTypes::with_selects(const Block& body) {
  Block out;
  for (StmtId s : body) {
    out.push_back(s);
    const auto* branch = p_.as<Branch>(s);
    if (!branch) continue;
    Branch sides = *branch;
    sides.then_body = with_selects(sides.then_body);
    sides.else_body = with_selects(sides.else_body);
    location_ = p_.stmts[s.value].location;
    const bool one = sides.then_body.size() == 1 && sides.else_body.size() == 1;
    const auto* a = one ? p_.as<Store>(sides.then_body.front()) : nullptr;
    const auto* b = one ? p_.as<Store>(sides.else_body.front()) : nullptr;
    if (a && b && shares_bytes(a->buffer) && a->buffer == b->buffer && a->indices == b->indices &&
        !a->atomic && !b->atomic && p_.exprs.type(a->value) == p_.exprs.type(b->value)) {
      Store joined = *a;
      joined.value = p_.exprs.select(sides.condition, a->value, b->value);
      out.back() = add(std::move(joined));
    } else {
      p_.stmts.push_back({std::move(sides), location_});
      out.back() = StmtId(p_.stmts.size() - 1);
    }
  }
  return out;
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
    std::vector<ExprId> values(static_cast<size_t>(in_byte));
    for (size_t at = lane; at < lane + static_cast<size_t>(in_byte); ++at) {
      const ExprId index = lanes[at].value(written.indices.back());
      int64_t element = 0;
      p_.exprs.is_const_int(index_.split(index, in_byte).rest, &element);
      values[static_cast<size_t>(element)] = lanes[at].value(written.value);
    }
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
