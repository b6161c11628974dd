#include "schedule/products/gemm_shared_layout.h"

#include <bit>
#include <map>

#include "analysis/warp_partition.h"
#include "ir/op_kinds.h"
#include "ir/store_parts.h"
#include "layout/bank_model.h"
#include "ops/op.h"
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
std::vector<WarpAccess> operand_reads(const MmaAtom& atom, int side, const MatrixDims& m, int bytes,
                                      int64_t k_together) {
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
  const int64_t together = contiguous ? registers_along_k(f, side) : k_together;
  for (int64_t reg = 0; reg < f.registers(); reg += together) {
    WarpAccess a;
    a.bytes = bytes * static_cast<int>(together);
    // The banks serve neighbouring lanes at once, where lanes take several k.
    std::map<int64_t, std::vector<int64_t>> places;
    for (int64_t i = 0; i < f.shape()[0]; ++i)
      for (int64_t j = 0; j < f.shape()[1]; ++j)
        for (int64_t r = 0; r < f.replicas(); ++r) {
          const std::vector<int64_t> index = {i, j};
          const std::vector<int64_t> held = f.map().eval(index, r);
          if (held[kRegister] != reg) continue;
          const int64_t outer = side == 0 ? i : j, k = side == 0 ? j : i;
          if (outer < outer_extent && k < k_extent)
            places[k_together > 1 ? held[layout::kThread] : static_cast<int64_t>(places.size())] =
                at(outer, k);
        }
    for (auto& [lane, place] : places) a.lanes.push_back(std::move(place));
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

// Byte addresses of one warp-wide access under a layout.
struct Requests {
  std::vector<int64_t> addresses;
  int bytes = 0;
};

std::vector<Requests> requests_of(const Layout& l, const std::vector<WarpAccess>& accesses,
                                  int element_bytes) {
  std::vector<Requests> list;
  for (const WarpAccess& a : accesses) {
    list.push_back({{}, a.bytes});
    for (const auto& index : a.lanes) list.back().addresses.push_back(l.offset(index) * element_bytes);
  }
  return list;
}

// Of a layout without a swizzle, as if it had one. Of as many as are fewer than `most`.
int64_t wavefronts_of(const std::vector<Requests>& requests, const layout::Swizzle& swizzle,
                      const layout::BankModel& banks, int64_t most) {
  int64_t sum = 0;
  std::vector<int64_t> moved;
  for (const Requests& r : requests) {
    if (sum >= most) break;
    moved.clear();
    for (int64_t a : r.addresses) moved.push_back(swizzle.apply(a));
    sum += layout::wavefronts(moved, r.bytes, banks);
  }
  return sum;
}

// What no layout of the tile goes below.
int64_t least_wavefronts_of(const std::vector<Requests>& requests, const layout::BankModel& banks) {
  int64_t sum = 0;
  for (const Requests& r : requests) sum += layout::least_wavefronts(r.addresses, r.bytes, banks);
  return sum;
}

// Of all lanes, whose blocks of k by a few rows stand beside each other, then along k: a row of each.
std::vector<WarpAccess> block_writes(const MatrixDims& m, int side, int bytes, int64_t together,
                                     int64_t lanes) {
  std::vector<WarpAccess> writes;
  const auto row_dim = static_cast<size_t>(side == 0 ? m.row : m.col),
             k_dim = static_cast<size_t>(side == 0 ? m.col : m.row);
  // Rows along k are written in pieces of them.
  const bool pieces = k_is_contiguous(m, side);
  for (int64_t rows : pieces ? std::vector<int64_t>{1} : std::vector<int64_t>{2, 4, 8}) {
    WarpAccess a;
    a.bytes = bytes * static_cast<int>(together);
    const auto inner = pieces ? k_dim : row_dim, outer = pieces ? row_dim : k_dim;
    for (int64_t i = 0; i < m.shape[outer]; i += pieces ? 1 : together)
      for (int64_t j = 0; j < m.shape[inner]; j += pieces ? together : rows) {
        std::vector<int64_t> index(m.shape.size(), 0);
        index[outer] = i, index[inner] = j;
        if (static_cast<int64_t>(a.lanes.size()) < lanes) a.lanes.push_back(std::move(index));
      }
    writes.push_back(std::move(a));
  }
  return writes;
}

// (k, row) at (k / together * rows + row) * together + k % together.
Layout with_k_together(const MatrixDims& m, int side, int64_t together) {
  const int k_dim = side == 0 ? m.col : m.row, row_dim = side == 0 ? m.row : m.col;
  std::vector<Digit> digits = {{.dim = k_dim, .extent = together, .weight = 1, .output = 0, .stride = 1}};
  int64_t stride = together;
  const auto add = [&](int dim, int64_t weight) {
    const int64_t extent = m.shape[static_cast<size_t>(dim)] / weight;
    if (extent > 1)
      digits.push_back({.dim = dim, .extent = extent, .weight = weight, .output = 0, .stride = stride});
    stride *= extent;
  };
  add(row_dim, 1);
  add(k_dim, together);
  for (int d = static_cast<int>(m.shape.size()); d-- > 0;)
    if (d != k_dim && d != row_dim) add(d, 1);
  return *Layout::make(m.shape, std::move(digits), 1);
}

// Copies from tensors fill the tile, and products along `k_dim` read it: nothing else touches it.
bool between_loads_and_products(const ir::Program& p, ir::BufferId tile, int k_dim) {
  for (size_t e = 0; e < p.exprs.size(); ++e)
    if (const ir::ExprNode& n = p.exprs[ir::ExprId(e)]; n.op == ir::ExprOp::load && n.object == tile)
      return false;
  for (const ir::Stmt& s : p.stmts) {
    if (const auto* store = std::get_if<ir::Store>(&s.node); store && ir::writes(*store, tile)) return false;
    const auto* op = std::get_if<ir::TileOp>(&s.node);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      if (op->operands[i].buffer != tile) continue;
      const bool loads =
          i == 1 && ops::is_copy(*op) && p.buffer(op->operands[0].buffer).scope == ir::MemScope::global;
      if (loads) continue;
      const bool product = op->kind == ir::OpKind::gemm || op->kind == ir::OpKind::gemm_sparse;
      if (!product || i > 1) return false;
      const MatrixDims m = analysis::operand_dims(p, *op, static_cast<int>(i));
      if ((i == 0 ? m.col : m.row) != k_dim) return false;
    }
  }
  return true;
}

}  // namespace

int64_t k_laid_together(const ir::Program& p, const ir::Region& operand, const MmaAtom& atom, int side,
                        const MatrixDims& m, const target::Target& t) {
  const ir::Buffer& b = p.buffer(operand.buffer);
  const int k_dim = side == 0 ? m.col : m.row;
  if (!t.register_copies || b.scope != ir::MemScope::shared || atom.unit != target::MmaUnit::matrix) return 1;
  const int64_t held = registers_along_k(side == 0 ? atom.a_layout : atom.b_layout, side);
  const bool whole = m.shape[static_cast<size_t>(k_dim)] % held == 0;
  return whole && between_loads_and_products(p, operand.buffer, k_dim) ? held : 1;
}

Layout shared_layout(const MmaAtom& atom, int side, const MatrixDims& m, ir::DType type,
                     const layout::BankModel& banks, int64_t k_together) {
  const int bytes = ir::dtype_bytes(type);
  const bool blocks = k_together > 1;
  const auto reads = operand_reads(atom, side, m, bytes, k_together),
             writes = blocks ? block_writes(m, side, bytes, k_together, atom.a_layout.threads())
                             : row_writes(m, bytes);
  const Layout plain = Layout::row_major(m.shape);
  const int64_t tile_bytes = plain.output_extent(0) * bytes, row_bytes = m.shape.back() * bytes;
  constexpr int64_t kReads = 4;  // for each time that it is written
  // Of as much as is less than `most`.
  auto cost_with = [&](const std::vector<Requests>& read, const std::vector<Requests>& written,
                       const layout::Swizzle& swizzle, int64_t most) {
    const int64_t of_reads = kReads * wavefronts_of(read, swizzle, banks, ceil_div(most, kReads));
    return of_reads >= most ? of_reads : of_reads + wavefronts_of(written, swizzle, banks, most - of_reads);
  };
  auto cost = [&](const Layout& l, int64_t most) {
    return cost_with(requests_of(l, reads, bytes), requests_of(l, writes, bytes), {}, most);
  };
  const bool plain_fits = row_bytes % target::kMatrixRowBytes == 0;
  Layout best = !blocks || k_is_contiguous(m, side) ? plain : with_k_together(m, side, k_together);
  constexpr int64_t kAny = INT64_MAX / 2;
  int64_t best_cost = blocks || plain_fits ? cost(best, kAny) : kAny;
  // The same bytes are touched wherever they lie.
  const int64_t least = kReads * least_wavefronts_of(requests_of(best, reads, bytes), banks) +
                        least_wavefronts_of(requests_of(best, writes, bytes), banks);
  const auto consider_swizzles = [&](const Layout& unswizzled, const auto& each_swizzle) {
    const auto read = requests_of(unswizzled, reads, bytes), written = requests_of(unswizzled, writes, bytes);
    each_swizzle([&](const layout::Swizzle& swizzle) {
      if (best_cost <= least) return;
      const int64_t c = cost_with(read, written, swizzle, best_cost);
      if (c >= best_cost) return;
      if (auto l = unswizzled.with_swizzle(swizzle, bytes)) {
        best_cost = c;
        best = std::move(*l);
      }
    });
  };
  if (blocks) {
    const int base = std::countr_zero(static_cast<uint64_t>(k_together * bytes));
    // As many pieces as the banks serve at once may change places.
    consider_swizzles(Layout(best), [&](const auto& consider) {
      for (int bits = 1; banks.row_bytes() >> (base + bits) > 0; ++bits)
        for (int shift = bits; shift <= 8; ++shift)
          if (tile_bytes % (int64_t{1} << (base + shift + bits)) == 0) consider({bits, base, shift});
    });
    return best;
  }
  if (plain_fits)
    consider_swizzles(plain, [&](const auto& consider) {
      for (int bits = 1; bits <= 3; ++bits)
        for (int shift = std::max(bits, 3); shift <= 8; ++shift)
          if (tile_bytes % (target::kMatrixRowBytes << bits) == 0) consider({bits, 4, shift});
    });
  const int64_t pad_to = ceil_div(row_bytes, target::kMatrixRowBytes) * target::kMatrixRowBytes;
  const auto consider = [&](const Layout& l) {
    if (const int64_t c = cost(l, best_cost); c < best_cost) {
      best_cost = c;
      best = l;
    }
  };
  for (int64_t padded : {pad_to, pad_to + target::kMatrixRowBytes})
    if (m.shape.size() >= 2 && padded > row_bytes && (padded - row_bytes) % bytes == 0)
      consider(Layout::padded_row_major(m.shape, (padded - row_bytes) / bytes));
  return best;
}

}  // namespace tilegen::schedule
