#include "runtime/sim/element_places.h"

#include <algorithm>
#include <map>

#include "analysis/gemm_shape.h"
#include "ir/op_kinds.h"
#include "ops/op.h"
#include "runtime/dim_solver.h"

namespace tilegen::runtime {
namespace {

using layout::Layout;

// What each index of each dimension adds to one output of a layout.
std::vector<std::vector<int64_t>> by_dimension(const Layout& l, int output) {
  std::vector<std::vector<int64_t>> parts;
  for (int64_t extent : l.shape()) parts.emplace_back(static_cast<size_t>(extent), 0);
  for (const layout::Digit& d : l.digits()) {
    if (d.output != output || d.dim == layout::kReplica) continue;
    auto& part = parts[static_cast<size_t>(d.dim)];
    for (size_t i = 0; i < part.size(); ++i)
      part[i] += static_cast<int64_t>(i) / d.weight % d.extent * d.stride;
  }
  return parts;
}

// Outputs of all points in row-major order.
std::vector<int64_t> all_points(const Layout& l, int output) {
  std::vector<int64_t> sums = {0};
  for (const auto& part : by_dimension(l, output)) {
    std::vector<int64_t> next;
    next.reserve(sums.size() * part.size());
    for (int64_t s : sums)
      for (int64_t p : part) next.push_back(s + p);
    sums = std::move(next);
  }
  return sums;
}

// Distances of an element's copies among the threads.
std::vector<int64_t> replica_threads(const Layout& l) {
  std::vector<int64_t> threads = {0};
  for (const layout::Digit& d : l.digits()) {
    if (d.dim != layout::kReplica || d.output != layout::kThread) continue;
    const std::vector<int64_t> before = threads;
    for (int64_t i = 1; i < d.extent; ++i)
      for (int64_t t : before) threads.push_back(t + i * d.stride);
  }
  return threads;
}

// Each place holds one element; where several fall together nothing is known.
class Table {
 public:
  explicit Table(int64_t places) { places_.element.assign(static_cast<size_t>(places), -1); }
  void put(int64_t place, size_t element) {
    if (place < 0 || place >= static_cast<int64_t>(places_.element.size())) return;
    int32_t& at = places_.element[static_cast<size_t>(place)];
    unique_ &= at < 0 || at == static_cast<int32_t>(element);
    at = static_cast<int32_t>(element);
  }
  sim::TilePlaces finish(const std::vector<int64_t>& shape, int64_t threads) {
    places_.threads = threads;
    if (unique_) places_.shape = shape;
    return std::move(places_);
  }

 private:
  sim::TilePlaces places_;
  bool unique_ = true;
};

sim::TilePlaces tile_places(const plan::ValuePlan& v, const thread::Memory& m) {
  if (v.memory && !m.in_registers) {
    const Layout& l = *v.memory;
    Table table(m.elements / m.slots);
    const std::vector<int64_t> offsets = all_points(l, 0);
    for (size_t e = 0; e < offsets.size(); ++e)
      table.put(l.swizzle().none() ? offsets[e]
                                   : l.swizzle().apply(offsets[e] * l.element_bytes()) / l.element_bytes(),
                e);
    return table.finish(l.shape(), 0);
  }
  if (!v.fragment || !m.in_registers) return {};
  const Layout& l = v.fragment->map();
  const int64_t threads = v.fragment->threads();
  Table table(m.elements * threads);
  const std::vector<int64_t> thread = all_points(l, layout::kThread), reg = all_points(l, layout::kRegister);
  for (int64_t replica : replica_threads(l))
    for (size_t e = 0; e < thread.size(); ++e) table.put(reg[e] * threads + thread[e] + replica, e);
  return table.finish(l.shape(), threads);
}

// Dimensions of a region that are more than one point, in order.
std::vector<size_t> long_dimensions(const ir::Region& r) {
  std::vector<size_t> list;
  for (size_t d = 0; d < r.extents.size(); ++d)
    if (r.extents[d] != 1) list.push_back(d);
  return list;
}

// Odd numbers that no small differences of coordinates add up between.
uint64_t weight_of(size_t dimension) {
  uint64_t x = (dimension + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (x ^ (x >> 31)) | 1;
}

// The tensor's dimensions; `weights` by dimension. False where an element's place does not say its
// coordinates.
bool tensor_dimensions(const ir::Buffer& b, const DimSolver& dims, const std::vector<uint64_t>& weights,
                       sim::CopySide& side) {
  int64_t compact = 1;
  for (size_t d = b.shape.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(1, dims.evaluate(b.shape[d]).value_or(1));
    const int64_t stride = b.strides.empty() ? compact : dims.evaluate(b.strides[d]).value_or(0);
    compact *= extent;
    if (extent > 1) side.dimensions.push_back({stride, extent, weights[d]});
  }
  std::stable_sort(side.dimensions.begin(), side.dimensions.end(),
                   [](const auto& x, const auto& y) { return x.stride > y.stride; });
  for (size_t i = 0; i < side.dimensions.size(); ++i) {
    const auto& d = side.dimensions[i];
    if (d.stride <= 0 || (i > 0 && d.stride * (d.extent - 1) >= side.dimensions[i - 1].stride)) return false;
  }
  return true;
}

// Dimensions of more than one point correspond in their order.
sim::StatementPlaces copy_places(const ir::Program& p, const ir::TileOp& op, const DimSolver& dims) {
  sim::StatementPlaces s;
  const std::vector<size_t> from = long_dimensions(op.operands[0]), to = long_dimensions(op.operands[1]);
  if (from.size() != to.size()) return s;
  const auto fill = [&](const ir::Region& r, const std::vector<size_t>& dimensions, size_t others,
                        sim::CopySide& side) {
    side.weights.resize(r.extents.size());
    for (size_t d = 0; d < r.extents.size(); ++d) side.weights[d] = weight_of(others + d);
    for (size_t i = 0; i < dimensions.size(); ++i) side.weights[dimensions[i]] = weight_of(i);
    const ir::Buffer& b = p.buffer(r.buffer);
    side.tensor = b.scope == ir::MemScope::global;
    return !side.tensor || tensor_dimensions(b, dims, side.weights, side);
  };
  s.copy = fill(op.operands[0], from, 100, s.from) && fill(op.operands[1], to, 200, s.to);
  return s;
}

}  // namespace

sim::ElementPlaces element_places(const driver::Artifact& artifact, size_t kernel,
                                  const thread::ThreadProgram& version, std::span<const uint64_t> slots) {
  const ir::Program& p = *artifact.program;
  const DimSolver dims(p, slots);
  const auto index = static_cast<size_t>(&version - artifact.kernels.data());
  const plan::KernelSchedule& decisions =
      index < artifact.decisions.size() ? artifact.decisions[index] : artifact.schedule.kernels[kernel];
  sim::ElementPlaces places;
  places.memories.resize(version.memories.size());
  places.statements.resize(version.stmts.size());
  // Fragments number the threads of the role that holds them, the simulator those of the block.
  const bool roles = std::any_of(version.stmts.begin(), version.stmts.end(), [](const thread::Stmt& s) {
    return std::holds_alternative<thread::Roles>(s.node);
  });
  for (size_t m = 0; m < version.memories.size(); ++m) {
    if (version.memories[m].space == thread::Space::global || (roles && version.memories[m].in_registers))
      continue;
    if (const auto* value = plan::find_value(decisions, version.memories[m].name))
      places.memories[m] = tile_places(*value, version.memories[m]);
  }
  std::map<std::string, sim::StatementPlaces> by_path;
  const std::vector<std::string> paths = ir::statement_paths(p);
  for (size_t s = 0; s < p.stmts.size(); ++s) {
    const auto* op = std::get_if<ir::TileOp>(&p.stmts[s].node);
    if (op == nullptr) continue;
    sim::StatementPlaces& places_of_op = by_path[paths[s]];
    if (ops::layout_rule(*op).form == ops::OpForm::contraction) {
      const analysis::MatrixDims a = analysis::matrix_dims(p, op->operands[0],
                                                           op->flag(ir::gemm_attr::transpose_a)),
                                 b = analysis::matrix_dims(p, op->operands[1],
                                                           op->flag(ir::gemm_attr::transpose_b)),
                                 c = analysis::matrix_dims(p, op->operands[2], false);
      places_of_op.product = true;
      // Of a sparse product the tile is the expanded one, m x k, where there is one
      // (schedule/form/decode_sparse.h).
      const bool expanded = op->kind == ir::OpKind::gemm_sparse;
      places_of_op.a_row = expanded ? 0 : a.row, places_of_op.a_k = expanded ? 1 : a.col;
      places_of_op.b_k = b.row, places_of_op.b_column = b.col;
      places_of_op.c_row = c.row, places_of_op.c_column = c.col;
    }
    if (ops::is_copy(*op)) places_of_op = copy_places(p, *op, dims);
    places_of_op.op = places.ops++;
  }
  for (size_t s = 0; s < version.stmts.size(); ++s)
    if (const auto at = by_path.find(version.stmts[s].origin); at != by_path.end())
      places.statements[s] = at->second;
  return places;
}

}  // namespace tilegen::runtime
