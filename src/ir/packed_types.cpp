#include "ir/packed_types.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/draft_exprs.h"
#include "ir/draft_pack.h"
#include "ir/op_kinds.h"
#include "ir/packed_resolver.h"
#include "ir/store_parts.h"
#include "ir/tile_view.h"
#include "ir/view_operands.h"
#include "support/diag_codes.h"

namespace tilegen::ir {

std::vector<Diagnostic> PackedTypes::run() {
  for (const Var& v : p_.vars)
    if (v.kind == VarKind::scalar && is_packed(v.type)) {
      location_ = v.location;
      error(DiagCode::dtype_mismatch, "scalar '" + v.name + "' is " + dtype_name(v.type),
            "pass it as i32 or f32 and cast it");
    }
  for (size_t b = 0; b < p_.buffers.size(); ++b)
    if (is_packed(p_.buffers[b].type) && !draft_.views.contains(BufferId(b))) declare(BufferId(b));
  for (Program::Printed& printed : p_.prints)
    if (is_packed(printed.type)) printed.type = decoded_type(printed.type);
  for (Buffer& b : p_.buffers) {
    for (ExprId& e : b.shape) exprs_.move(e);
    for (ExprId& e : b.strides) exprs_.move(e);
  }
  for (Kernel& k : p_.kernels) {
    kernel_ = &k;
    for (ExprId& e : k.grid) exprs_.move(e);
    std::vector<StmtId> all;
    for_each_statement(p_, k.body, [&](StmtId s, int) { all.push_back(s); });
    for (StmtId s : all)
      if (errors_.empty()) statement(s);
    if (errors_.empty()) fill_parts(k);
  }
  if (!errors_.empty()) return std::move(errors_);
  std::map<StmtId, Around> behind;
  for (const auto& [s, loops] : behind_) behind[s].after = loops;
  insert_around(p_, behind);
  order_statements(p_);
  return std::move(errors_);
}

void PackedTypes::error(DiagCode code, std::string message, std::string hint) {
  if (!errors_.empty()) return;
  Diagnostic d;
  d.code = code;
  d.op = kernel_ ? kernel_->name : p_.name;
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.location = location_;
  d.stage = "resolve";
  errors_.push_back(std::move(d));
}

bool PackedTypes::takes(BufferId b, ExprId value) {
  const DType wanted = packed(b) ? packed(b)->type : p_.buffer(b).type, got = p_.exprs.type(value);
  if (got != wanted)
    error(DiagCode::dtype_mismatch,
          "the value stored to '" + p_.buffer(b).name + "' is " + dtype_name(got) + ", expected " +
              dtype_name(wanted),
          std::string("cast it to ") + dtype_name(wanted));
  return got == wanted;
}

void PackedTypes::declare(BufferId id) {
  Buffer& b = p_.buffers[id.value];
  const bool shares = b.scope == MemScope::global || b.scope == MemScope::shared;
  const DType type = std::exchange(b.type, DType::u8);
  const int in_byte = shares ? codes_in_byte(type) : 1;
  buffers_[id] = {type, in_byte};
  location_ = b.location;
  if (b.scope == MemScope::global && !b.workspace) b.packed = type;
  if (in_byte == 1 || b.shape.empty()) return;
  const std::string of_elements =
      "'" + b.name + "' keeps " + std::to_string(in_byte) + " elements of " + dtype_name(type) + " in a byte";
  if (!index_.divides(in_byte, b.shape.back()))
    return error(DiagCode::bad_shape, of_elements + ", and its last extent is not known to be whole bytes",
                 "make it a multiple of " + std::to_string(in_byte) + ": a dim may be said to be divisible " +
                     std::to_string(in_byte));
  for (size_t d = 0; d < b.strides.size(); ++d) {
    const bool last = d + 1 == b.strides.size();
    if (last ? !index_.is(b.strides[d], 1) : !index_.divides(in_byte, b.strides[d]))
      return error(DiagCode::bad_shape,
                   of_elements + ", and stride " + std::to_string(d) + " is not known to be " +
                       (last ? "1" : "whole bytes"),
                   "the last stride is 1, the others are multiples of " + std::to_string(in_byte));
  }
  b.shape.back() = index_.quotient(b.shape.back(), in_byte);
  for (size_t d = 0; d + 1 < b.strides.size(); ++d) b.strides[d] = index_.quotient(b.strides[d], in_byte);
}

void PackedTypes::statement(StmtId s) {
  if (s.value < merged_.size() && merged_[s.value]) return;
  location_ = p_.stmts[s.value].location;
  auto& node = p_.stmts[s.value].node;
  if (auto* loop = std::get_if<Loop>(&node)) {
    if (loop->kind == LoopKind::parallel && shared_elements(loop->body) > 1) return write_bytes(s);
    exprs_.move(loop->begin), exprs_.move(loop->condition);
    for (ExprId& e : loop->extents) exprs_.move(e);
  } else if (auto* branch = std::get_if<Branch>(&node)) {
    exprs_.move(branch->condition);
  } else if (auto* store = std::get_if<Store>(&node)) {
    if (shares_bytes(store->buffer))
      return error(DiagCode::misplaced_statement,
                   "an element of '" + p_.buffer(store->buffer).name +
                       "', which shares a byte with others, is written outside of a parallel loop",
                   "write whole bytes in a parallel loop, or keep the value in a local tile");
    plain_store(*store);
  } else {
    tile_op(s, std::get<TileOp>(node));
  }
}

void PackedTypes::plain_store(Store& store) {
  const PackedBuffer* b = packed(store.buffer);
  if (b && store.atomic)
    return error(DiagCode::dtype_mismatch,
                 "an atomic operation on '" + p_.buffer(store.buffer).name + "' of " + dtype_name(b->type),
                 "use a tensor of i32");
  if (store.old && packed(store.old->buffer))
    return error(DiagCode::dtype_mismatch,
                 "old values go to '" + p_.buffer(store.old->buffer).name + "' of " +
                     dtype_name(packed(store.old->buffer)->type),
                 "use a tile of the type of the element");
  if ((b || is_packed(p_.exprs.type(store.value))) && !takes(store.buffer, store.value)) return;
  const ExprId value = store.value;
  if (b) store.value = store.indices.front();  // moved below
  visit_exprs(store, [&](ExprId& e) { exprs_.move(e); });
  if (b) store.value = p_.exprs.cast(DType::u8, exprs_.code(value));
}

bool PackedTypes::box_of_bytes(Region& r) {
  const int in_byte = packed(r.buffer)->in_byte;
  if (in_byte == 1) return true;
  if (r.extents.back() % in_byte != 0 || !index_.divides(in_byte, r.offsets.back())) return false;
  r.offsets.back() = index_.quotient(r.offsets.back(), in_byte);
  r.extents.back() /= in_byte;
  return true;
}

void PackedTypes::tile_op(StmtId s, TileOp op) {
  std::optional<size_t> first;
  for (size_t i = op.operands.size(); i-- > 0;)
    if (packed(op.operands[i].buffer)) first = i;
  for (Region& r : op.operands)
    for (ExprId& e : r.offsets) exprs_.move(e);
  if (first && op.kind == OpKind::copy) return copy(s, std::move(op));
  if (first && op.kind == OpKind::fill) return fill(s, std::move(op));
  if (first) {
    const OpRow& row = op_row(op.kind);
    const Buffer& b = p_.buffer(op.operands[*first].buffer);
    const DType type = packed(op.operands[*first].buffer)->type;
    return error(DiagCode::dtype_mismatch,
                 std::string(row.text) + "'s operand '" + std::string(row.operands[*first].name) + "', '" +
                     b.name + "', is " + dtype_name(type) + ", of which values are kept only",
                 std::string("cast its elements into a tile of another type in a parallel loop: W[i, j] = ") +
                     "cast(" + (is_float(type) ? "f16" : "i8") + ", " + b.name + "[i, j])");
  }
  exprs_.move(op.value);
  p_.stmts[s.value].node = std::move(op);
}

void PackedTypes::fill(StmtId s, TileOp op) {
  if (!takes(op.operands[0].buffer, op.value)) return;
  if (!box_of_bytes(op.operands[0])) return element_by_element(s, op);
  const PackedBuffer b = *packed(op.operands[0].buffer);
  ExprId byte = exprs_.code(op.value);
  for (int bits = dtype_bits(b.type); b.in_byte > 1 && bits < 8; bits *= 2)
    byte = p_.exprs.binary(ExprOp::bit_or, byte,
                           p_.exprs.binary(ExprOp::shl, byte, p_.exprs.const_int(bits, DType::i32)));
  op.value = p_.exprs.cast(DType::u8, byte);
  p_.stmts[s.value].node = std::move(op);
}

void PackedTypes::copy(StmtId s, TileOp op) {
  const PackedBuffer *src = packed(op.operands[0].buffer), *dst = packed(op.operands[1].buffer);
  if (src && dst && src->type == dst->type && src->in_byte == dst->in_byte &&
      correspond(op.operands[0], op.operands[1])) {
    TileOp bytes = op;
    if (box_of_bytes(bytes.operands[0]) && box_of_bytes(bytes.operands[1]) &&
        correspond(bytes.operands[0], bytes.operands[1])) {
      p_.stmts[s.value].node = std::move(bytes);
      return;
    }
  }
  element_by_element(s, op);
}

// A copy or a fill as a parallel loop.
void PackedTypes::element_by_element(StmtId s, const TileOp& op) {
  const Region &from = op.operands.front(), &to = op.operands.back();
  std::vector<int64_t> extents = several(to.extents);
  if (several(from.extents) != extents)
    return error(DiagCode::shape_mismatch,
                 "src '" + p_.buffer(from.buffer).name + "' and dst '" + p_.buffer(to.buffer).name +
                     "' have different extents, and their elements are not copied as bytes",
                 "give both the same extents");
  if (extents.empty()) extents = {1};
  Loop loop{LoopKind::parallel, {}, p_.exprs.const_int(0), {}};
  for (size_t i = 0; i < extents.size(); ++i) {
    loop.extents.push_back(p_.exprs.const_int(extents[i]));
    Var v;
    v.name = free_tile_name(p_, draft_, std::string(1, static_cast<char>('i' + i % 8)));
    v.location = location_;
    loop.vars.push_back(VarId(p_.vars.size()));
    p_.vars.push_back(std::move(v));
  }
  const auto place = [&](const Region& r) {
    std::vector<ExprId> at = r.offsets;
    size_t next = 0;
    for (size_t d = 0; d < at.size(); ++d)
      if (r.extents[d] != 1) at[d] = p_.exprs.add(at[d], p_.exprs.var(loop.vars[next++]));
    return at;
  };
  const auto type_of = [&](BufferId b) { return packed(b) ? packed(b)->type : p_.buffer(b).type; };
  Store store;
  store.buffer = to.buffer;
  store.indices = place(to);
  store.value = op.value;
  if (op.kind == OpKind::copy)
    store.value =
        p_.exprs.cast(type_of(to.buffer), p_.exprs.load(from.buffer, type_of(from.buffer), place(from)));
  loop.body = {add(std::move(store))};
  p_.stmts[s.value].node = std::move(loop);
  const StmtId inner = p_.as<Loop>(s)->body.front();
  statement(s);
  if (errors_.empty()) statement(inner);
}

bool has_packed_types(const Program& p) {
  for (size_t e = 0; e < p.exprs.size(); ++e)
    if (is_packed(p.exprs.type(ExprId(e)))) return true;
  const auto packed_var = [](const Var& v) { return is_packed(v.type); };
  const auto packed_buffer = [](const Buffer& b) { return is_packed(b.type); };
  return std::any_of(p.vars.begin(), p.vars.end(), packed_var) ||
         std::any_of(p.buffers.begin(), p.buffers.end(), packed_buffer);
}

std::vector<Diagnostic> resolve_packed_types(Program& p, const Draft& draft) {
  return PackedTypes(p, draft).run();
}

}  // namespace tilegen::ir
