#include "analysis/tensor_copy.h"

#include <algorithm>
#include <numeric>

#include "analysis/uniformity.h"
#include "arith/interval.h"
#include "layout/tensor_tile.h"
#include "ops/element_view.h"
#include "ops/op.h"
#include "support/checked.h"

namespace tilegen::analysis {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {

constexpr size_t kMaxDims = 5;

bool orders_blocks(const ir::Program& p) {
  return std::any_of(p.stmts.begin(), p.stmts.end(), [&](const ir::Stmt& s) {
    const auto* store = std::get_if<ir::Store>(&s.node);
    return store && store->order != ir::AtomicOrder::relaxed &&
           p.buffer(store->buffer).scope == ir::MemScope::global;
  });
}

// x of (x + r) // c with 0 <= r < c: that is x // c where c divides x.
ExprId dividend(const ir::Program& p, ExprId e, int64_t c) {
  const ExprNode& n = p.exprs[e];
  int64_t r = 0;
  if (n.op != ExprOp::add) return e;
  if (p.exprs.is_const_int(n.b, &r) && r >= 0 && r < c) return n.a;
  return p.exprs.is_const_int(n.a, &r) && r >= 0 && r < c ? n.b : e;
}

// The value is a multiple of `d`, or is when some dims are.
bool can_be_multiple(const ir::Program& p, ExprId e, int64_t d) {
  const ExprNode& n = p.exprs[e];
  int64_t value = 0;
  if (p.exprs.is_const_int(e, &value)) return value % d == 0;
  switch (n.op) {
    case ExprOp::var: {
      const ir::Var& v = p.var(n.var());
      return v.kind == ir::VarKind::dim ? has_multiple(v.lower, v.upper, v.divisor, d) : v.divisor % d == 0;
    }
    case ExprOp::mul:
      return can_be_multiple(p, n.a, d) || can_be_multiple(p, n.b, d);
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::min:
    case ExprOp::max:
      return can_be_multiple(p, n.a, d) && can_be_multiple(p, n.b, d);
    case ExprOp::floordiv: {
      const auto both = p.exprs.is_const_int(n.b, &value) && value > 0 ? checked_mul(value, d) : std::nullopt;
      return both && can_be_multiple(p, dividend(p, n.a, value), *both);
    }
    default:
      return false;
  }
}

// How a number that has to be a multiple of 16 bytes is none.
std::string no_multiple(const ir::Program& p, ExprId e, const std::string& what) {
  return p.exprs.is_const_int(e) ? what + " is no multiple of 16 bytes"
                                 : "no size is known that makes " + what + " a multiple of 16 bytes";
}

std::string strides_refusal(const ir::Program& p, const ir::Buffer& tensor) {
  const int64_t d = std::max<int64_t>(1, layout::kTensorUnit / ir::dtype_bytes(tensor.type));
  const std::string what = "a stride of tensor '" + tensor.name + "'";
  if (tensor.strides.empty())
    return tensor.shape.size() < 2 || can_be_multiple(p, tensor.shape.back(), d)
               ? ""
               : no_multiple(p, tensor.shape.back(), what);
  int64_t last = 0;
  if (!p.exprs.is_const_int(tensor.strides.back(), &last) || last != 1)
    return "the last dimension of tensor '" + tensor.name + "' is not dense";
  for (size_t i = 0; i + 1 < tensor.strides.size(); ++i) {
    int64_t fixed = 1;
    if (p.exprs.is_const_int(tensor.strides[i], &fixed) && fixed <= 0)
      return "a stride of tensor '" + tensor.name + "' is not positive";
    if (!can_be_multiple(p, tensor.strides[i], d)) return no_multiple(p, tensor.strides[i], what);
  }
  return "";
}

// The largest number that is known to divide the value; 0: the value is 0.
int64_t known_divisor(const ir::Program& p, ExprId e) {
  constexpr int64_t kEnough = int64_t{1} << 20;
  const ExprNode& n = p.exprs[e];
  int64_t value = 0;
  if (p.exprs.is_const_int(e, &value)) return value == INT64_MIN ? kEnough : std::abs(value);
  switch (n.op) {
    case ExprOp::var:
      return std::max<int64_t>(1, p.var(n.var()).divisor);
    case ExprOp::mul: {
      const int64_t a = known_divisor(p, n.a), b = known_divisor(p, n.b);
      return a > kEnough || b > kEnough ? std::gcd(a, kEnough) * std::gcd(b, kEnough) : a * b;
    }
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::min:
    case ExprOp::max:
      return std::gcd(known_divisor(p, n.a), known_divisor(p, n.b));
    case ExprOp::floormod:
      return std::gcd(known_divisor(p, n.a), known_divisor(p, n.b));
    case ExprOp::select:
      return std::gcd(known_divisor(p, n.b), known_divisor(p, n.c));
    case ExprOp::floordiv: {
      if (!p.exprs.is_const_int(n.b, &value) || value <= 0) return 1;
      const int64_t all = known_divisor(p, dividend(p, n.a, value));
      return all % value == 0 ? all / value : 1;
    }
    default:
      return 1;
  }
}

using arith::Interval;

Interval range(const ir::Program& p, ExprId e);

// 0 <= counter < trips
Interval range_of_counter(Interval trips) {
  return {0, trips.hi == Interval::kMax ? trips.hi : std::max<int64_t>(0, trips.hi - 1)};
}
Interval range_of_block_index(const ir::Program& p, ir::VarId v) {
  for (const ir::Kernel& k : p.kernels)
    if (const auto at = std::find(k.block_vars.begin(), k.block_vars.end(), v); at != k.block_vars.end())
      return range_of_counter(range(p, k.grid[static_cast<size_t>(at - k.block_vars.begin())]));
  return {0, Interval::kMax};
}
// A loop counts up from where it begins.
Interval range_of_loop(const ir::Program& p, ir::VarId v) {
  for (const ir::Stmt& s : p.stmts) {
    const auto* loop = std::get_if<ir::Loop>(&s.node);
    if (!loop) continue;
    const auto at = std::find(loop->vars.begin(), loop->vars.end(), v);
    if (at == loop->vars.end()) continue;
    const Interval count =
        range_of_counter(range(p, loop->extents[static_cast<size_t>(at - loop->vars.begin())]));
    return loop->begin.valid() ? arith::interval_add(range(p, loop->begin), count) : count;
  }
  return Interval::whole();
}
Interval range_of_variable(const ir::Program& p, ir::VarId v) {
  switch (p.var(v).kind) {
    case ir::VarKind::dim:
      return {p.var(v).lower, p.var(v).upper};
    case ir::VarKind::block_index:
      return range_of_block_index(p, v);
    case ir::VarKind::loop:
      return range_of_loop(p, v);
    default:
      return Interval::whole();
  }
}

// Of the value, taken over the integers.
Interval range(const ir::Program& p, ExprId e) {
  const ExprNode& n = p.exprs[e];
  int64_t value = 0;
  if (p.exprs.is_const_int(e, &value)) return Interval::point(value);
  const auto a = [&] { return range(p, n.a); };
  const auto b = [&] { return range(p, n.b); };
  switch (n.op) {
    case ExprOp::var:
      return range_of_variable(p, n.var());
    case ExprOp::add:
      return arith::interval_add(a(), b());
    case ExprOp::sub:
      return arith::interval_sub(a(), b());
    case ExprOp::neg:
      return arith::interval_neg(a());
    case ExprOp::mul:
      return arith::interval_mul(a(), b());
    case ExprOp::floordiv:
      return arith::interval_floordiv(a(), b());
    case ExprOp::floormod:
      return arith::interval_floormod(a(), b());
    case ExprOp::min:
      return arith::interval_min(a(), b());
    case ExprOp::max:
      return arith::interval_max(a(), b());
    case ExprOp::select:
      return arith::hull(b(), range(p, n.c));
    default:
      return Interval::whole();
  }
}

// The engine's instructions are illegal for a place that is no multiple of 16 bytes along the dense
// dimension, and for writing at one before the tensor.
std::string place_refusal(const ir::Program& p, const ir::Region& region, const ir::Buffer& tensor,
                          bool load) {
  const int64_t d = std::max<int64_t>(1, layout::kTensorUnit / ir::dtype_bytes(tensor.type));
  if (known_divisor(p, region.offsets.back()) % d != 0)
    return "its place along the dense dimension of tensor '" + tensor.name +
           "' is not known to be a multiple of 16 bytes";
  if (!load && !can_be_multiple(p, tensor.shape.back(), d))
    return no_multiple(p, tensor.shape.back(), "a row of tensor '" + tensor.name + "'") +
           ", in which the engine stores";
  if (!load && !std::all_of(region.offsets.begin(), region.offsets.end(),
                            [&](ExprId o) { return range(p, o).lo >= 0; }))
    return "its place may lie before tensor '" + tensor.name +
           "', as far as is known (max(.., 0) says that it does not)";
  return "";
}

// What the engine combines with elements of a tensor (PTX ISA, cp.reduce.async.bulk.tensor). Its minimum and
// maximum of floats say nothing of NaN; on 8-byte integers it was an illegal instruction on an H200.
std::string reduction_refusal(const ir::Program& p, const ir::TileOp& op) {
  const auto kind = ops::layout_rule(op).atomic;
  if (!kind) return "";
  const ir::DType type = p.buffer(op.operands[1].buffer).type;
  const bool sums = *kind == ir::AtomicKind::add && ir::is_float(type) && ir::dtype_bytes(type) <= 4;
  const bool takes = sums || (type == ir::DType::i32 && *kind != ir::AtomicKind::exchange);
  return takes ? ""
               : "the engine has no " + std::string(ir::atomic_text(*kind)) + " of " + ir::dtype_name(type);
}

}  // namespace

bool has_multiple(int64_t lower, int64_t upper, int64_t divisor, int64_t d) {
  const auto step = checked_mul(divisor / std::gcd(divisor, d), d);
  return step && upper / *step * *step >= std::max<int64_t>(lower, 1);
}

std::optional<std::vector<int64_t>> TensorCopyDims::box_of_rows(int64_t rows) const {
  std::vector<int64_t> box(tensor_outer.size(), 1);
  for (size_t i = box.size(); i-- > 0 && rows > 1;) {
    const int64_t extent = tensor_outer[i].extent, part = std::min(rows, extent);
    if (rows % part != 0 || (i > 0 && extent % part != 0)) return std::nullopt;
    box[i] = part;
    rows /= part;
  }
  return rows == 1 ? std::optional(std::move(box)) : std::nullopt;
}

std::optional<layout::TensorTile> tensor_boxes(const TensorCopyDims& dims, const layout::Layout& tile,
                                               int element_bytes, std::string* reason) {
  auto boxes = layout::tensor_tile(tile, dims.tile_inner, element_bytes, reason);
  const auto refuse = [&](std::string why) {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  if (!boxes) return boxes;
  const int64_t all_rows = boxes->rows * boxes->row_boxes;
  const bool part = dims.outer.extent != all_rows || dims.inner.extent != boxes->inner * boxes->column_boxes;
  if (!part && dims.box_of_rows(boxes->rows)) return boxes;
  if (dims.inner.first % boxes->inner != 0 || dims.inner.extent % boxes->inner != 0)
    return refuse("it fills a part of the tile whose columns are not whole boxes of " +
                  std::to_string(boxes->inner));
  // Smaller ones, of rows that follow each other as closely, or that lie in one.
  const bool dense = boxes->row_boxes == 1 || boxes->row_stride == boxes->rows * boxes->inner;
  const int64_t unit = boxes->swizzle > 0 ? layout::kSwizzleRows : 1, row = boxes->inner * element_bytes;
  for (int64_t rows = std::min(boxes->rows, dims.outer.extent); rows >= unit; --rows) {
    if (boxes->rows % rows != 0 || rows % unit != 0 || rows * row % layout::kBoxAlignment != 0 ||
        dims.outer.first % rows != 0 || dims.outer.extent % rows != 0 || !dims.box_of_rows(rows))
      continue;
    const bool inside_one = dims.outer.first % boxes->rows + dims.outer.extent <= boxes->rows;
    if (!dense && !inside_one && rows != boxes->rows) continue;
    boxes->first = dims.outer.first / boxes->rows * boxes->row_stride +
                   dims.outer.first % boxes->rows * boxes->inner +
                   dims.inner.first / boxes->inner * boxes->column_stride;
    if (rows != boxes->rows) boxes->row_stride = rows * boxes->inner;
    boxes->rows = rows;
    boxes->row_boxes = dims.outer.extent / rows;
    boxes->column_boxes = dims.inner.extent / boxes->inner;
    return boxes;
  }
  return refuse(part ? "it fills a part of the tile whose rows are no whole boxes, or none of the tensor's "
                       "dimensions"
                     : "boxes of " + std::to_string(boxes->rows) +
                           " rows are none of the tensor's dimensions");
}

std::optional<TensorCopyDims> tensor_copy_dims(const ir::Program& p, const ir::TileOp& copy,
                                               std::string* reason) {
  auto refuse = [&](std::string why) {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  if (!ops::is_transfer(copy)) return refuse("it is no copy");
  if (std::string why = reduction_refusal(p, copy); !why.empty()) return refuse(std::move(why));
  auto scope = [&](size_t i) { return p.buffer(copy.operands[i].buffer).scope; };
  if ((scope(0) == ir::MemScope::global) == (scope(1) == ir::MemScope::global))
    return refuse("it is no copy between a tensor and a tile");
  TensorCopyDims dims;
  dims.load = scope(0) == ir::MemScope::global;
  const size_t tensor_operand = dims.load ? 0 : 1;
  const ir::Region& region = copy.operands[tensor_operand];
  const ir::Buffer& tensor = p.buffer(region.buffer);
  if (tensor.shape.empty() || tensor.shape.size() > kMaxDims)
    return refuse("tensor '" + tensor.name + "' has " + std::to_string(tensor.shape.size()) +
                  " dimensions, tensor copies take 1 to 5");
  if (tensor.optional)
    return refuse("tensor '" + tensor.name + "' is optional, and a null address has no tensor map");
  if (!tensor.read_only && orders_blocks(p))
    return refuse(
        "tensor '" + tensor.name +
        "' may be written between blocks that atomic operations order, and none orders what the copy "
        "engine does");
  for (ExprId extent : tensor.shape)
    if (int64_t fixed = 1; p.exprs.is_const_int(extent, &fixed) && fixed < 1)
      return refuse("tensor '" + tensor.name + "' has no elements");
  for (const ir::Region& r : copy.operands)
    for (ExprId offset : r.offsets)
      if (!is_uniform(p, offset)) return refuse("its place is read from memory that the kernel may write");
  if (std::string why = strides_refusal(p, tensor); !why.empty()) return refuse(std::move(why));
  if (std::string why = place_refusal(p, region, tensor, dims.load); !why.empty())
    return refuse(std::move(why));

  const auto groups = ops::matched_groups(copy.operands[tensor_operand], copy.operands[1 - tensor_operand]);
  if (!groups) return refuse("its shapes do not match");
  std::vector<ops::DimGroup> several;
  for (const ops::DimGroup& g : *groups)
    if (g.a.size() > 1 || g.b.size() > 1 || region.extents[static_cast<size_t>(g.a[0])] > 1)
      several.push_back(g);
  if (several.empty()) return refuse("it moves one element");
  const ops::DimGroup& inner = several.back();
  if (several.size() > 2 ||
      std::any_of(several.begin(), several.end(), [](const auto& g) { return g.b.size() > 1; }))
    return refuse("its tile has more than two dimensions of several elements");
  dims.tensor_inner = inner.a.back();
  dims.tile_inner = inner.b[0];
  if (dims.tensor_inner + 1 != static_cast<int>(tensor.shape.size()))
    return refuse("it moves one element along the dense dimension of tensor '" + tensor.name + "'");
  if (inner.a.size() > 1) return refuse("rows of its tile are several of tensor '" + tensor.name + "'");
  if (several.size() == 2) {
    for (int d : several.front().a) dims.tensor_outer.push_back({d, region.extents[static_cast<size_t>(d)]});
    dims.tile_outer = several.front().b[0];
  }
  const ir::Region& tile = copy.operands[1 - tensor_operand];
  const auto part_of = [&](int d, TensorCopyDims::Range& range) {
    range.extent = tile.extents[static_cast<size_t>(d)];
    return p.exprs.is_const_int(tile.offsets[static_cast<size_t>(d)], &range.first);
  };
  if (!part_of(dims.tile_inner, dims.inner) ||
      (dims.tile_outer >= 0 && !part_of(dims.tile_outer, dims.outer)))
    return refuse("its place in the tile is not known by number");
  return dims;
}

}  // namespace tilegen::analysis
