#include "schedule/products/gemm_shared_layout.h"

#include "layout/bank_model.h"
#include "support/checked.h"
#include "target/operand_matrices.h"

namespace tilegen::schedule {

using analysis::k_is_contiguous;
using analysis::MatrixDims;
using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::Layout;
using target::MmaAtom;

namespace {

// Byte addresses of one warp-wide access.
struct WarpAccess {
  std::vector<std::vector<int64_t>> lanes;  // index of each lane's first element
  int bytes = target::kMatrixRowBytes;
};

// Neighbouring k of a row that a lane holds in neighbouring registers.
int64_t registers_along_k(const Fragment& f, int side) {
  for (const Digit& d : f.map().digits())
    if (d.dim == 1 - side && d.weight == 1 && d.output == kRegister && d.stride == 1) return d.extent;
  return 1;
}

// Rows of 16 bytes that ldmatrix takes at once, or the elements that the lanes of an atom hold.
std::vector<WarpAccess> operand_reads(const MmaAtom& atom, int side, const MatrixDims& m, int bytes) {
  std::vector<WarpAccess> reads;
  const bool contiguous = k_is_contiguous(m, side);
  auto at = [&](int64_t outer, int64_t k) {
    return side == 0 ? m.at<int64_t>(outer, k, 0) : m.at<int64_t>(k, outer, 0);
  };
  const int64_t outer_extent = m.shape[static_cast<size_t>(side == 0 ? m.row : m.col)];
  const int64_t k_extent = m.shape[static_cast<size_t>(side == 0 ? m.col : m.row)];
  if (!target::operand_matrices(atom, side).empty() && (contiguous || bytes == 2)) {
    const int64_t chunk = target::kMatrixRowBytes / bytes;
    for (int64_t begin : {int64_t{0}, int64_t{1}}) {
      WarpAccess a;
      for (int64_t r = 0; r < target::kMatrixRows; ++r) {
        const int64_t outer = contiguous ? r : begin * chunk, k = contiguous ? begin * chunk : r;
        if (outer < outer_extent && k < k_extent) a.lanes.push_back(at(outer, k));
      }
      reads.push_back(std::move(a));
    }
    return reads;
  }
  const Fragment& f = side == 0 ? atom.a_layout : atom.b_layout;
  const int64_t together = contiguous ? registers_along_k(f, side) : 1;
  for (int64_t reg = 0; reg < f.registers(); reg += together) {
    WarpAccess a;
    a.bytes = bytes * static_cast<int>(together);
    for (int64_t i = 0; i < f.shape()[0]; ++i)
      for (int64_t j = 0; j < f.shape()[1]; ++j)
        for (int64_t r = 0; r < f.replicas(); ++r) {
          const std::vector<int64_t> index = {i, j};
          if (f.map().eval(index, r)[kRegister] != reg) continue;
          const int64_t outer = side == 0 ? i : j, k = side == 0 ? j : i;
          if (outer < outer_extent && k < k_extent) a.lanes.push_back(at(outer, k));
        }
    reads.push_back(std::move(a));
  }
  return reads;
}

// Eight neighbouring pieces of as many bytes, as copies write them.
std::vector<WarpAccess> row_writes(const MatrixDims& m, int bytes) {
  WarpAccess a;
  const int64_t chunk = std::max<int64_t>(1, target::kMatrixRowBytes / bytes), columns = m.shape.back();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < m.shape.size(); ++d) rows *= m.shape[d];
  for (int64_t piece = 0; piece < 8; ++piece) {
    const int64_t pieces = std::max<int64_t>(1, columns / chunk), row = piece / pieces;
    if (row >= rows) break;
    std::vector<int64_t> index(m.shape.size(), 0);
    index.back() = piece % pieces * chunk;
    int64_t rest = row;
    for (size_t d = m.shape.size() - 1; d-- > 0;) {
      index[d] = rest % m.shape[d];
      rest /= m.shape[d];
    }
    a.lanes.push_back(std::move(index));
  }
  return {a};
}

int64_t wavefronts_of(const Layout& l, const std::vector<WarpAccess>& accesses, int element_bytes,
                      const layout::BankModel& banks) {
  int64_t sum = 0;
  for (const WarpAccess& a : accesses) {
    std::vector<int64_t> addresses;
    for (const auto& index : a.lanes) addresses.push_back(l.offset(index) * element_bytes);
    sum += layout::wavefronts(addresses, a.bytes, banks);
  }
  return sum;
}

}  // namespace

Layout shared_layout(const MmaAtom& atom, int side, const MatrixDims& m, ir::DType type,
                     const layout::BankModel& banks) {
  const int bytes = ir::dtype_bytes(type);
  const auto reads = operand_reads(atom, side, m, bytes), writes = row_writes(m, bytes);
  const Layout plain = Layout::row_major(m.shape);
  const int64_t tile_bytes = plain.output_extent(0) * bytes, row_bytes = m.shape.back() * bytes;
  auto cost = [&](const Layout& l) {
    return 4 * wavefronts_of(l, reads, bytes, banks) + wavefronts_of(l, writes, bytes, banks);
  };
  Layout best = plain;
  int64_t best_cost = row_bytes % target::kMatrixRowBytes == 0 ? cost(plain) : INT64_MAX;
  auto consider = [&](const Layout& l) {
    if (const int64_t c = cost(l); c < best_cost) {
      best_cost = c;
      best = l;
    }
  };
  if (row_bytes % target::kMatrixRowBytes == 0)
    for (int bits = 1; bits <= 3; ++bits)
      for (int shift = std::max(bits, 3); shift <= 8; ++shift) {
        if (tile_bytes % (target::kMatrixRowBytes << bits) != 0) continue;
        if (auto l = plain.with_swizzle({bits, 4, shift}, bytes)) consider(*l);
      }
  const int64_t pad_to = ceil_div(row_bytes, target::kMatrixRowBytes) * target::kMatrixRowBytes;
  for (int64_t padded : {pad_to, pad_to + target::kMatrixRowBytes})
    if (m.shape.size() >= 2 && padded > row_bytes && (padded - row_bytes) % bytes == 0)
      consider(Layout::padded_row_major(m.shape, (padded - row_bytes) / bytes));
  return best;
}

}  // namespace tilegen::schedule
