#include "infer/access_cost.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "analysis/projection.h"
#include "support/checked.h"

namespace tilegen::infer {

using analysis::KernelOp;
using analysis::OpAccess;

using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;

namespace {

int buffer_dim_walking(const ops::ElementAccess& a, int iteration_dim) {
  for (size_t d = 0; d < a.dim_of.size(); ++d)
    if (a.dim_of[d] == iteration_dim) return static_cast<int>(d);
  const auto walk = a.terms.empty() ? std::nullopt : a.walk(iteration_dim);
  return walk ? walk->dim : -1;
}

// Points along the iteration dimension whose elements lie side by side because of how their indices are
// made, where something is known of that: vectors are of a power of two of them.
int64_t indexed_run(const ops::ElementAccess& a, int iteration_dim) {
  if (iteration_dim < 0 || a.terms.empty() || !a.depends_on(iteration_dim)) return INT64_MAX;
  const auto walk = a.walk(iteration_dim);
  if (!walk) return 1;
  return walk->run == INT64_MAX ? walk->run : walk->run & -walk->run;
}

// On a GPU: the access names registers of the thread.
bool in_registers(const ir::Buffer& b, ValueId value, const KnownLayouts& known) {
  if (b.scope != ir::MemScope::fragment && b.scope != ir::MemScope::local) return false;
  return !value.valid() || !known.memories[value];
}

bool irregular(const ops::ElementAccess& a) { return a.any_unknown(); }

// Consecutive elements along `dim` of the buffer that lie side by side, 0 when none do.
int64_t memory_run(const ir::Program& p, const ops::ElementAccess& a, ValueId value, int dim,
                   const KnownLayouts& known) {
  const ir::Buffer& b = p.buffer(a.buffer);
  if (!value.valid()) {
    if (dim + 1 != static_cast<int>(b.shape.size())) return 1;
    int64_t stride = 1;
    return b.strides.empty() || (p.exprs.is_const_int(b.strides.back(), &stride) && stride == 1) ? INT64_MAX
                                                                                                 : 1;
  }
  const auto& memory = known.memories[value];
  if (memory) return memory->contiguous_run(dim);
  const auto& fragment = known.fragments[value];
  if (fragment) return fragment->map().contiguous_run(dim, kRegister);
  return INT64_MAX;
}

// Of what one access moves, its vector along `dim`. On a GPU registers are no memory, an element that names a
// row is one for the whole vector, and of elements that are found by other than the vector's place lanes may
// read one: only where nothing else is touched do these count.
int64_t widest_bytes(const ir::Program& p, const KernelOp& op, int dim, const KnownLayouts& known,
                     const target::Target& t) {
  int64_t any = 1, memory = 0;
  const bool names_rows = std::any_of(op.view.accesses.begin(), op.view.accesses.end(),
                                      [](const ops::ElementAccess& a) { return irregular(a); });
  for (size_t i = 0; i < op.accesses.size(); ++i) {
    const OpAccess& a = op.accesses[i];
    const ir::Buffer& b = p.buffer(a.buffer);
    any = std::max<int64_t>(any, ir::dtype_bytes(b.type));
    if (in_registers(b, a.value, known)) continue;
    const ops::ElementAccess& access = op.view.accesses[i];
    if (!t.addressable_registers() && irregular(access)) continue;
    const bool once = names_rows && !a.write && !access.depends_on(dim);
    if (!once) memory = std::max<int64_t>(memory, ir::dtype_bytes(b.type));
  }
  return t.addressable_registers() || memory == 0 ? any : memory;
}

// The iteration point of a thread's first register.
std::vector<int64_t> first_point(const Fragment& f, int64_t thread) {
  std::vector<Digit> digits;
  for (const Digit& d : f.map().digits())
    if (d.output == kThread && d.stride > 0) digits.push_back(d);
  std::sort(digits.begin(), digits.end(), [](const auto& a, const auto& b) { return a.stride > b.stride; });
  std::vector<int64_t> point(static_cast<size_t>(f.rank()), 0);
  for (const Digit& d : digits) {
    if (d.dim != kReplica) point[static_cast<size_t>(d.dim)] += thread / d.stride % d.extent * d.weight;
    thread %= d.stride;
  }
  return point;
}

// Transactions of a warp that touches single elements of a shared tile, its vector across the tile's rows,
// under the best layout that keeps 16 bytes of a row together: of the units with an element in one of their
// words, as many are served at once as the banks have units.
double crossing_transactions(const ir::Program& p, const ops::ElementAccess& a, const Fragment& iteration,
                             const target::Target& t) {
  const int64_t unit_bytes = t.vector_bytes, word_bytes = t.banks.bank_bytes,
                units_of_banks = t.banks.row_bytes() / unit_bytes;
  const std::vector<int64_t> shape = p.tile_shape(a.buffer);
  const int64_t bytes = ir::dtype_bytes(p.buffer(a.buffer).type);
  std::map<int64_t, std::set<std::pair<int64_t, int64_t>>> units;  // row and place, by word
  for (int64_t lane = 0; lane < t.warp; ++lane) {
    const std::vector<int64_t> point = first_point(iteration, lane);
    int64_t row = 0, at = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t index = a.index_at(d, point);
      if (d + 1 < shape.size())
        row = row * shape[d] + index;
      else
        at = index * bytes;
    }
    units[at % unit_bytes / word_bytes].insert({row, at / unit_bytes});
  }
  int64_t most = 1;
  for (const auto& [word, of] : units)
    most = std::max(most, ceil_div(static_cast<int64_t>(of.size()), units_of_banks));
  return static_cast<double>(most);
}

// Some access to memory goes along the iteration dimension.
bool moves_along(const ir::Program& p, const KernelOp& op, int dim, const KnownLayouts& known) {
  for (size_t i = 0; i < op.view.accesses.size(); ++i)
    if (!in_registers(p.buffer(op.accesses[i].buffer), op.accesses[i].value, known) &&
        buffer_dim_walking(op.view.accesses[i], dim) >= 0)
      return true;
  return false;
}

int64_t points(const Fragment& f) { return f.map().elements(); }

}  // namespace

int walked_dims(const ops::ElementAccess& a) {
  auto count = std::count_if(a.dim_of.begin(), a.dim_of.end(), [](int k) { return k >= 0; });
  for (const auto& terms : a.terms) count += static_cast<std::ptrdiff_t>(terms.size());
  return static_cast<int>(count);
}

int64_t vector_width(const ir::Program& p, const KernelOp& op, const Fragment& iteration,
                     const KnownLayouts& known, const target::Target& t) {
  const Digit* digit = analysis::vector_digit(iteration);
  if (!digit) return 1;
  int64_t limit = t.vector_bytes / widest_bytes(p, op, digit->dim, known, t);
  if (!t.has_block_threads())
    return std::min<int64_t>(limit,
                             static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(digit->extent))));
  int64_t width = digit->extent;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ops::ElementAccess& a = op.view.accesses[i];
    const ir::Buffer& b = p.buffer(a.buffer);
    if (in_registers(b, op.accesses[i].value, known)) continue;
    width = std::min(width, indexed_run(a, digit->dim));
    int dim = buffer_dim_walking(a, digit->dim);
    if (dim < 0) continue;
    width = std::min(width,
                     a.is_unknown_along(digit->dim) ? 1 : memory_run(p, a, op.accesses[i].value, dim, known));
  }
  while (width > limit || (width > 1 && digit->extent % width != 0)) --width;
  // Only powers of two are machine accesses.
  while ((width & (width - 1)) != 0 || digit->extent % width != 0) --width;
  return std::max<int64_t>(width, 1);
}

double access_cost(const ir::Program& p, const KernelOp& op, const Fragment& iteration,
                   const KnownLayouts& known, const target::Target& t) {
  const int64_t width = vector_width(p, op, iteration, known, t);
  const int dim = analysis::vector_dim(iteration);
  const double accesses =
      static_cast<double>(points(iteration) * iteration.replicas()) / static_cast<double>(width);
  // Loop and address work, and what is computed: of registers alone element by element, copies of it too.
  const bool wide = !t.has_block_threads() || moves_along(p, op, dim, known);
  double cost = wide ? accesses : accesses * static_cast<double>(width);
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ops::ElementAccess& a = op.view.accesses[i];
    const ir::Buffer& b = p.buffer(a.buffer);
    const bool global = b.scope == ir::MemScope::global;
    if (!t.addressable_registers() && in_registers(b, op.accesses[i].value, known)) continue;
    int walked = dim < 0 ? -1 : buffer_dim_walking(a, dim);
    if (!t.has_block_threads()) {
      bool contiguous = indexed_run(a, dim) >= width &&
                        (walked < 0 || (!a.is_unknown_along(dim) &&
                                        memory_run(p, a, op.accesses[i].value, walked, known) >= width));
      cost += accesses * (contiguous ? 1.0 : static_cast<double>(width) * (a.write ? 1.2 : 1.0));
      continue;
    }
    if (!global && walked >= 0 && !irregular(a) && a.along_last() != dim) {  // element by element
      cost += accesses * static_cast<double>(width) / t.warp * crossing_transactions(p, a, iteration, t);
      continue;
    }
    // Segments of one warp access: lanes that continue the vector's run share lines.
    int64_t run = walked < 0 ? 1 : width;
    for (const Digit& d : iteration.map().digits())
      if (d.dim == dim && d.output == kThread && d.weight == run) run *= std::min<int64_t>(d.extent, t.warp);
    if (walked >= 0 && global)
      run = std::min({run, memory_run(p, a, op.accesses[i].value, walked, known), indexed_run(a, dim)});
    double bytes = static_cast<double>(ir::dtype_bytes(b.type));
    double warp_bytes = static_cast<double>(t.warp * width) * bytes;
    double segments =
        std::max(1.0, warp_bytes / std::min(static_cast<double>(t.line_bytes),
                                            static_cast<double>(std::max<int64_t>(run, 1)) * bytes));
    cost += accesses / t.warp * segments * (global ? 8.0 : 1.0);
  }
  return cost + static_cast<double>(iteration.registers());
}

}  // namespace tilegen::infer
