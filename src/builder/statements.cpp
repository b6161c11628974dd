// Tiles, regions, tile operations and stores.
#include <string>

#include "builder/builder.h"
#include "ir/place_extents.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

std::string Builder::buffer_text(ir::BufferId id) const {
  const ir::Buffer& b = program_.buffer(id);
  return std::string(b.scope == ir::MemScope::global ? "tensor" : "tile") + " '" + b.name + "'";
}

bool Builder::check_buffer(std::string_view call, std::string_view what, ir::BufferId id) {
  if (id.value >= program_.buffers.size()) {
    fail(DiagCode::stale_handle, call, std::string(what) + " is not a buffer of this builder",
         "pass what tl_tensor or tl_alloc of the same builder returned");
    return false;
  }
  const ir::Buffer& b = program_.buffer(id);
  if (b.kernel < 0 || (b.kernel == current_kernel() && !frames_.empty())) return true;
  fail(DiagCode::out_of_scope, call,
       buffer_text(id) + " belongs to kernel '" + program_.kernels[static_cast<size_t>(b.kernel)].name +
           "', which has ended",
       "allocate a tile in this kernel, or pass values between kernels through a tensor");
  return false;
}

bool Builder::check_region(std::string_view call, std::string_view what, const ir::Region& r) {
  if (!check_buffer(call, what, r.buffer)) return false;
  if (r.extents.size() == program_.buffer(r.buffer).shape.size() && r.offsets.size() == r.extents.size())
    return true;
  fail(DiagCode::rank_mismatch, call,
       std::string(what) + " has " + std::to_string(r.extents.size()) + " dimensions, its " +
           buffer_text(r.buffer) + " has " + std::to_string(program_.buffer(r.buffer).shape.size()),
       "make regions with tl_region_of");
  return false;
}

void Builder::take_extents(std::string_view call, ir::Region& place, const ir::Region& from) {
  if (const auto wrong = ir::take_extents(program_, place, from.extents))
    fail(wrong->code, call, wrong->message, "give its extents: tl_region_of");
}

ir::BufferId Builder::alloc(std::string_view name, ir::MemScope scope, ir::DType type,
                            std::span<const int64_t> shape) {
  constexpr std::string_view kCall = "tl_alloc";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_dtype(kCall, type) || !room_for_buffer(kCall) ||
      !check_operands(kCall, {}))
    return {};
  if (frames_.size() != 1) {
    fail(DiagCode::misplaced_statement, kCall,
         "a tile is allocated directly in its kernel, not inside the " + frames_.back().what,
         "move the call before the loop; a tile lives as long as its kernel");
    return {};
  }
  if (scope != ir::MemScope::shared && scope != ir::MemScope::fragment && scope != ir::MemScope::local) {
    const bool known = scope == ir::MemScope::global;
    fail(known ? DiagCode::scope_not_allowed : DiagCode::bad_enum, kCall,
         known ? "a tile cannot be allocated in global memory" : "there is no such memory scope",
         "use TL_SCOPE_SHARED, TL_SCOPE_FRAGMENT or TL_SCOPE_LOCAL; global memory is a tensor, with "
         "TL_TENSOR_WORKSPACE one that no argument gives");
    return {};
  }
  const std::string what = "tile '" + std::string(name) + "'";
  if (!check_rank(kCall, what, shape.size())) return {};
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 1) {
      fail(DiagCode::bad_shape, kCall,
           what + " extent " + std::to_string(i) + " is " + std::to_string(shape[i]),
           "give extents of at least 1");
      return {};
    }
  const auto elements = checked_product(shape);
  if (!elements || *elements > limits_.tile_elements) {
    fail(DiagCode::limit_memory, kCall,
         what + " has more than " + std::to_string(limits_.tile_elements) + " elements", "use smaller tiles");
    return {};
  }
  if (!declare(kCall, name, "tile")) return {};
  ir::Buffer b;
  b.name = name;
  b.scope = scope;
  b.type = type;
  for (int64_t extent : shape) b.shape.push_back(program_.exprs.const_int(extent));
  b.kernel = current_kernel();
  b.location = location_;
  program_.buffers.push_back(std::move(b));
  return ir::BufferId(program_.buffers.size() - 1);
}

std::optional<ir::Region> Builder::region(ir::BufferId buffer, std::span<const ir::ExprId> offsets,
                                          std::span<const int64_t> extents) {
  const std::string_view call = extents.empty() && offsets.empty() ? "tl_whole" : "tl_region_of";
  if (!ready(call) || !inside_kernel(call) || !check_buffer(call, "the buffer", buffer) ||
      !check_operands(call, {}))
    return {};
  const ir::Buffer& b = program_.buffer(buffer);
  ir::Region r;
  r.buffer = buffer;
  if (extents.empty() && offsets.empty()) {
    for (ir::ExprId e : b.shape) {
      int64_t extent = 0;
      if (!program_.exprs.is_const_int(e, &extent)) {
        fail(DiagCode::bad_shape, call,
             buffer_text(buffer) + " has a symbolic extent, so there is no whole of it",
             "give offsets and constant extents");
        return {};
      }
      r.extents.push_back(extent);
      r.offsets.push_back(program_.exprs.const_int(0));
    }
    return r;
  }
  if (extents.size() != b.shape.size() || offsets.size() != b.shape.size()) {
    fail(DiagCode::rank_mismatch, call,
         buffer_text(buffer) + " has " + std::to_string(b.shape.size()) + " dimensions, " +
             std::to_string(offsets.size()) + " offsets and " + std::to_string(extents.size()) +
             " extents were given",
         "give one of each per dimension");
    return {};
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!check_index(call, "offset " + std::to_string(i), offsets[i])) return {};
    if (extents[i] < 1) {
      fail(DiagCode::bad_shape, call, "extent " + std::to_string(i) + " is " + std::to_string(extents[i]),
           "give extents of at least 1");
      return {};
    }
  }
  if (!checked_product(extents)) {
    fail(DiagCode::overflow, call, "the number of elements of the region overflows", "use smaller extents");
    return {};
  }
  r.offsets.assign(offsets.begin(), offsets.end());
  r.extents.assign(extents.begin(), extents.end());
  return r;
}

bool Builder::check_attrs(std::string_view call, const ir::OpRow& row, std::span<const int64_t> attrs) {
  if (attrs.size() > row.attrs.size()) {
    fail(DiagCode::bad_attribute, call, "'" + std::string(row.text) + "' has fewer attributes",
         "pass those it has");
    return false;
  }
  for (size_t i = 0; i < attrs.size(); ++i) {
    const ir::AttrRow& a = row.attrs[i];
    const bool good = a.type == ir::AttrType::boolean       ? attrs[i] == 0 || attrs[i] == 1
                      : a.type == ir::AttrType::enumeration ? !ir::attr_value_name(a, attrs[i]).empty()
                                                            : true;
    if (good) continue;
    fail(DiagCode::bad_attribute, call,
         "attribute '" + std::string(a.name) + "' has no value " + std::to_string(attrs[i]),
         a.type == ir::AttrType::boolean ? "give 0 or 1" : "give one of " + std::string(a.values));
    return false;
  }
  return true;
}

void Builder::tile_op(ir::OpKind kind, std::span<const ir::Region> operands, std::span<const int64_t> attrs,
                      ir::ExprId value) {
  if (static_cast<size_t>(kind) >= ir::op_rows().size())
    return fail(DiagCode::bad_enum, "tl_builder", "there is no such tile operation", "use one of ops.def");
  const ir::OpRow& row = ir::op_row(kind);
  const std::string call = "tl_" + std::string(row.text);
  if (!ready(call) || !inside_kernel(call) || !outside_parallel(call)) return;
  if (operands.size() != row.operands.size())
    return fail(DiagCode::rank_mismatch, call,
                std::to_string(operands.size()) + " operands were given, it takes " +
                    std::to_string(row.operands.size()),
                "pass each operand once");
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string what = "operand '" + std::string(row.operands[i].name) + "'";
    if (!check_region(call, what, operands[i])) return;
    if (row.operands[i].access != ir::Access::read && program_.buffer(operands[i].buffer).read_only)
      return fail(DiagCode::write_to_input, call,
                  what + " writes " + buffer_text(operands[i].buffer) + ", which is read-only",
                  "declare the tensor without TL_TENSOR_READ_ONLY");
  }
  if (!check_attrs(call, row, attrs)) return;
  if (row.has_value && !check_expr(call, "the value", value)) return;
  ir::TileOp op;
  op.kind = kind;
  op.operands.assign(operands.begin(), operands.end());
  for (size_t i = 0; i < attrs.size(); ++i) op.attrs[i] = attrs[i];
  if (row.has_value) op.value = value;
  marked(call, add_statement(call, std::move(op)));
}

void Builder::store(ir::BufferId buffer, std::span<const ir::ExprId> indices, ir::ExprId value) {
  add_store("tl_store", {buffer, {indices.begin(), indices.end()}, value});
}

void Builder::atomic_store(ir::BufferId buffer, std::span<const ir::ExprId> indices, ir::ExprId value,
                           ir::AtomicKind kind) {
  add_store("tl_store_atomic", {buffer, {indices.begin(), indices.end()}, value, kind});
}

ir::VarId Builder::fetch_atomic(ir::BufferId buffer, std::span<const ir::ExprId> indices, ir::ExprId value,
                                ir::AtomicKind kind, ir::ExprId expected, std::string_view name) {
  const bool compares = kind == ir::AtomicKind::compare_exchange;
  const std::string_view call = compares ? "tl_compare_exchange" : "tl_fetch_atomic";
  if (!ready(call) || !inside_kernel(call) || !check_buffer(call, "the buffer", buffer)) return {};
  if (!in_parallel()) {
    fail(DiagCode::misplaced_statement, call, "it stands outside a parallel loop",
         "put it into one, of a single iteration for one operation of the block");
    return {};
  }
  ir::Store s{buffer, {indices.begin(), indices.end()}, value, kind};
  if (compares) {
    if (!check_expr(call, "what is expected", expected)) return {};
    s.expected = expected;
  }
  const ir::DType type = program_.buffer(buffer).type;
  const ir::StmtId made = add_store(call, std::move(s));
  const ir::VarId old = made ? add_inner_var(call, name, ir::VarKind::loop, type) : ir::VarId();
  if (!old) return {};
  draft_.temporaries[old] = false;
  draft_.old_values[made] = old;
  return old;
}

void Builder::fetch_atomic_to(ir::Store what, ir::BufferId old, std::span<const ir::ExprId> old_indices) {
  const bool compares = what.atomic == ir::AtomicKind::compare_exchange;
  const std::string_view call = compares ? "tl_compare_exchange_to" : "tl_fetch_atomic_to";
  if (!ready(call) || !inside_kernel(call) || !check_buffer(call, "the tile of old values", old) ||
      !check_indices(call, old, old_indices))
    return;
  if (!in_parallel())
    return fail(DiagCode::misplaced_statement, call, "it stands outside a parallel loop",
                "put it into one, of a single iteration for one operation of the block");
  if (program_.buffer(old).scope != ir::MemScope::shared)
    return fail(DiagCode::scope_not_allowed, call,
                "the old value goes to " + buffer_text(old) + ", expected a tile of TL_SCOPE_SHARED",
                "name the old value by tl_fetch_atomic or tl_compare_exchange, and store the name");
  if (compares && !check_expr(call, "what is expected", what.expected)) return;
  what.old = ir::Store::OldValue{old, {old_indices.begin(), old_indices.end()}};
  add_store(call, std::move(what));
}

void Builder::atomic_order(ir::AtomicOrder order) {
  constexpr std::string_view kCall = "tl_atomic_order";
  if (ready(kCall) && inside_kernel(kCall)) order_ = order;
}

ir::StmtId Builder::add_store(std::string_view call, ir::Store s) {
  if (s.atomic) s.order = std::exchange(order_, ir::AtomicOrder::relaxed);
  if (!ready(call) || !inside_kernel(call) || !check_buffer(call, "the buffer", s.buffer) ||
      !check_indices(call, s.buffer, s.indices) || !check_expr(call, "the value", s.value))
    return {};
  const ir::Buffer& b = program_.buffer(s.buffer);
  if (b.read_only) {
    fail(DiagCode::write_to_input, call, buffer_text(s.buffer) + " is read-only",
         "declare the tensor without TL_TENSOR_READ_ONLY");
    return {};
  }
  for (ir::ExprId value : {s.value, s.expected})
    if (value && program_.exprs.type(value) != b.type) {
      fail(DiagCode::dtype_mismatch, call,
           buffer_text(s.buffer) + " holds " + ir::dtype_name(b.type) + ", the value is " +
               ir::dtype_name(program_.exprs.type(value)),
           "cast the value");
      return {};
    }
  return marked(call, add_statement(call, std::move(s)));
}

}  // namespace tilegen::builder
