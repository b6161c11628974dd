#include "analysis/projection.h"

#include <algorithm>

namespace tilegen::analysis {

using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;
using layout::Layout;

std::optional<Fragment> compacted(std::vector<int64_t> shape, std::vector<Digit> digits, int64_t threads) {
  std::vector<Digit*> registers;
  for (Digit& d : digits)
    if (d.output == kRegister) registers.push_back(&d);
  std::stable_sort(registers.begin(), registers.end(),
                   [](const Digit* a, const Digit* b) { return a->stride < b->stride; });
  int64_t stride = 1;
  for (Digit* d : registers) {
    d->stride = stride;
    stride *= d->extent;
  }
  // Replica digits in thread order, so that equal fragments are written equally.
  std::vector<Digit*> replicas;
  for (Digit& d : digits)
    if (d.dim == kReplica) replicas.push_back(&d);
  std::stable_sort(replicas.begin(), replicas.end(),
                   [](const Digit* a, const Digit* b) { return a->stride < b->stride; });
  int64_t weight = 1;
  for (Digit* d : replicas) {
    d->weight = weight;
    weight *= d->extent;
  }
  auto map = Layout::make(std::move(shape), std::move(digits), 2);
  if (!map) return std::nullopt;
  auto f = Fragment::make(*map, threads);
  if (!f) return std::nullopt;
  return f->canonical();
}

std::optional<Fragment> project(const Fragment& iteration, const ops::ElementAccess& access,
                                std::span<const int64_t> shape) {
  std::vector<int> buffer_dim(static_cast<size_t>(iteration.rank()), -1);
  for (size_t d = 0; d < shape.size(); ++d) {
    int k = access.dim_of[d];
    if (k == ops::kIrregularIndex) return std::nullopt;
    if (k == ops::kUniformIndex) {
      if (shape[d] != 1) return std::nullopt;
      continue;
    }
    if (access.offset[d] != 0 || iteration.shape()[static_cast<size_t>(k)] != shape[d] ||
        buffer_dim[static_cast<size_t>(k)] >= 0)
      return std::nullopt;
    buffer_dim[static_cast<size_t>(k)] = static_cast<int>(d);
  }
  std::vector<Digit> digits;
  for (Digit d : iteration.map().digits()) {
    if (d.dim != kReplica) {
      int target = buffer_dim[static_cast<size_t>(d.dim)];
      if (target < 0 && d.output == kRegister) continue;
      d.dim = target < 0 ? kReplica : target;
    }
    digits.push_back(d);
  }
  return compacted({shape.begin(), shape.end()}, std::move(digits), iteration.threads());
}

std::optional<Fragment> pull_back(const Fragment& held, const ops::ElementAccess& access,
                                  std::span<const int64_t> extents) {
  std::vector<bool> walked(extents.size(), false);
  for (size_t d = 0; d < held.shape().size(); ++d) {
    int k = access.dim_of[d];
    if (k == ops::kUniformIndex && held.shape()[d] == 1) continue;
    if (k < 0 || access.offset[d] != 0 || extents[static_cast<size_t>(k)] != held.shape()[d] ||
        walked[static_cast<size_t>(k)])
      return std::nullopt;
    walked[static_cast<size_t>(k)] = true;
  }
  std::vector<Digit> digits;
  for (Digit d : held.map().digits()) {
    if (d.dim != kReplica) d.dim = access.dim_of[static_cast<size_t>(d.dim)];
    digits.push_back(d);
  }
  int64_t stride = held.registers();
  for (size_t k = extents.size(); k-- > 0;) {
    if (walked[k] || extents[k] == 1) continue;
    digits.push_back({static_cast<int>(k), extents[k], 1, kRegister, stride});
    stride *= extents[k];
  }
  return compacted({extents.begin(), extents.end()}, std::move(digits), held.threads());
}

int part_of_fragment(const ir::Program& p, const KernelOp& op,
                     const std::function<bool(ValueId value)>& in_registers) {
  const auto* tile_op = p.as<ir::TileOp>(op.stmt);
  if (!tile_op || op.form != OpForm::element) return -1;
  int part = -1;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    if (!op.accesses[i].value.valid() || !in_registers(op.accesses[i].value)) continue;
    if (part >= 0) return -1;
    part = static_cast<int>(i);
  }
  if (part < 0) return -1;
  const ops::ElementAccess& a = op.view.accesses[static_cast<size_t>(part)];
  const std::vector<int64_t> shape = p.tile_shape(a.buffer);
  bool whole = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (a.dim_of[d] == ops::kIrregularIndex) return -1;
    const int64_t extent = a.dim_of[d] < 0 ? 1 : op.view.extents[static_cast<size_t>(a.dim_of[d])];
    whole = whole && extent == shape[d];
  }
  return whole ? -1 : part;
}

std::vector<int> index_map(const ops::ElementAccess& access) {
  std::vector<int> map;
  for (int k : access.dim_of) map.push_back(k < 0 ? layout::kBroadcast : k);
  return map;
}

const Digit* vector_digit(const Fragment& iteration) {
  for (const Digit& d : iteration.map().digits())
    if (d.dim != kReplica && d.output == kRegister && d.stride == 1 && d.weight == 1) return &d;
  return nullptr;
}

int vector_dim(const Fragment& iteration) {
  const Digit* d = vector_digit(iteration);
  return d ? d->dim : -1;
}

}  // namespace tilegen::analysis
