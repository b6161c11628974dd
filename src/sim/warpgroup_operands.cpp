// Operands of a warpgroup's products in shared memory: where the hardware finds their elements (PTX ISA,
// "Asynchronous warpgroup level matrix: shared memory layout"), from the fields of the matrix descriptor
// alone.
#include <algorithm>

#include "layout/tensor_tile.h"
#include "sim/cluster_run.h"
#include "sim/element_check.h"
#include "sim/run_findings.h"
#include "support/checked.h"

namespace tilegen::sim {

namespace {

constexpr int64_t kUnit = layout::kSwizzleUnit;   // bytes that lie together, whatever the form
constexpr int64_t kGroup = layout::kSwizzleRows;  // rows of a core matrix
constexpr int64_t kFields = 1 << 18;              // lengths are below: 14 bits of 16 bytes

// One unit: its byte address, and the row (of A; column of B) and k of its first element. Its elements run
// along k, or along the rows where k is the slow dimension.
struct Unit {
  int64_t address = 0, row = 0, k = 0;
};

// The operand of one instruction, rows x k elements, whose matrix begins at byte `base`.
template <class F>
void for_each_unit(const thread::MatrixForm& form, int64_t base, int64_t rows, int64_t k, int element, F f) {
  const int64_t unit = kUnit / element, width = form.swizzle == 0 ? kUnit : form.swizzle;
  const int64_t fast = form.k_major ? k : rows, slow = form.k_major ? rows : k;
  for (int64_t s = 0; s < slow; ++s)
    for (int64_t u = 0; u < fast / unit; ++u) {
      // Core matrices are 8 rows of `width` bytes. Without a swizzle the fields change their parts where k is
      // slow.
      const bool changed = !form.k_major && form.swizzle == 0;
      const int64_t down = changed ? form.leading_bytes : form.stride_bytes;
      const int64_t along = changed ? form.stride_bytes : form.leading_bytes;
      // Along k an operand of 32 bytes is within its swizzled row, where the descriptor points.
      const int64_t in_row =
          form.k_major && form.swizzle != 0 ? u * kUnit : u * kUnit / width * along + u * kUnit % width;
      const int64_t address = base + s / kGroup * down + s % kGroup * width + in_row;
      f(Unit{swizzled(address, form.swizzle), form.k_major ? s : u * unit, form.k_major ? u * unit : s});
    }
}

struct Side {
  const thread::MatrixForm& form;
  const MemoryView& memory;
  const std::vector<int64_t>& steps;
  int64_t base, rows, k;
  int element;
  int64_t at(size_t step) const { return base + steps[step] * element; }
};

Side side_of(const thread::WarpgroupMma& n, const Product& p, const Launch& launch,
             const WarpgroupTables& atom, bool of_a) {
  const MemoryView& m = launch.memories[(of_a ? n.a : n.b).value];
  return {of_a ? n.a_form : n.b_form,
          m,
          of_a ? n.a_steps : n.b_steps,
          of_a ? p.a : p.b,
          of_a ? 64 : atom.n,
          of_a ? atom.atom->a_k() : atom.atom->k,
          m.element};
}

}  // namespace

void judge_operand(ClusterRun& run, int group, Product& p, bool of_a) {
  const auto& n = run.node<thread::WarpgroupMma>(*p.step);
  const WarpgroupTables& atom = run.code.warpgroup_atoms[p.step->atom];
  const Side side = side_of(n, p, run.launch, atom, of_a);
  const uint32_t access = of_a ? p.step->access_a : p.step->access_b;
  const int thread = group * kGroupThreads;
  const MemoryView& m = side.memory;
  const int64_t slot_bytes = m.elements / run.program.memory(of_a ? n.a : n.b).slots * m.element;
  const int64_t begin = run.arena_begin(side.base / run.arena_stride) + m.arena_offset;
  const int64_t slot = begin + (side.base - begin) / slot_bytes * slot_bytes;
  const auto element_of = [&](int64_t address) { return (address - begin) / m.element; };
  const auto finding = [&](FindingKind kind, int64_t address, std::string detail) {
    access_finding(run, kind, access, thread, element_of(address), std::move(detail));
  };
  for (const int64_t bytes : {side.form.leading_bytes, side.form.stride_bytes})
    if (bytes < 0 || bytes >= kFields || bytes % kUnit != 0)
      finding(FindingKind::matrix_form, side.base,
              std::to_string(bytes) + " bytes are no distance in a descriptor");
  const std::vector<int>& written_as = run.launch.swizzles[(of_a ? n.a : n.b).value];
  if (!written_as.empty() &&
      std::find(written_as.begin(), written_as.end(), side.form.swizzle) == written_as.end())
    finding(FindingKind::matrix_form, side.base,
            "it is read with a swizzle of " + std::to_string(side.form.swizzle) + " bytes, but copied with " +
                std::to_string(written_as.front()));

  // Warps have their own view of what is over: the product reads when all of them have issued it.
  std::vector<uint32_t> seen(static_cast<size_t>(run.engines.count()), 0xffffffffu);
  std::vector<uint32_t> fenced(static_cast<size_t>(run.engines.warps()), 0xffffffffu);
  for (int i = group * kGroupWarps; i < (group + 1) * kGroupWarps; ++i) {
    for (size_t q = 0; q < seen.size(); ++q) seen[q] = std::min(seen[q], run.order.seen(i, ~LaneMask{0})[q]);
    for (size_t q = 0; q < fenced.size(); ++q)
      fenced[q] = std::min(fenced[q], run.order.fenced(i, ~LaneMask{0})[q]);
  }
  SharedHistory::Actor by;
  by.access = access;
  by.memory = run.code.accesses[access].memory.value;
  by.thread = run.engines.product(group) * run.lanes;
  by.epoch = p.work;
  by.seen = seen.data(), by.fenced = fenced.data(), by.warps = run.engines.warps();

  AccessSum& sum = run.sums[access];
  for (size_t step = 0; step < side.steps.size() && p.sound; ++step) {
    const int64_t base = side.at(step);
    const int64_t lines = side.form.swizzle == 0 ? 8 : side.form.swizzle;
    const int64_t off = side.form.swizzle == 0 ? base % kUnit : base % (kGroup * lines);
    if (side.form.swizzle == 0 ? off != 0 : off >= lines || off % kUnit != 0)
      finding(FindingKind::misaligned, base,
              "byte address " + std::to_string(run.in_arena(base)) +
                  " of shared memory does not begin 8 rows of the swizzle");
    ++run.unit_mark;
    int64_t units = 0;
    for_each_unit(side.form, base, side.rows, side.k, side.element, [&](const Unit& u) {
      if (!p.sound) return;
      if (u.address < slot || u.address + kUnit > slot + slot_bytes) {
        finding(FindingKind::out_of_bounds, u.address,
                "the product reads it, outside of its slot of " + std::to_string(slot_bytes / m.element) +
                    " elements");
        p.sound = false;
        return;
      }
      ++units;
      uint32_t& mark = run.unit_marks[static_cast<size_t>(u.address / kUnit)];
      if (mark == run.unit_mark)
        finding(FindingKind::matrix_form, u.address, "two elements of the operand lie there");
      mark = run.unit_mark;
      if (!run.options.check_races) return;
      int64_t at = 0;
      const Trouble t = run.history.read(by, u.address, kUnit, &at);
      if (t.conflict != Conflict::none) report_shared(run, t, access, thread, at);
    });
    sum.requests += 1;
    sum.bytes += units * kUnit;
    run.counters.shared_bytes += units * kUnit;
    sum.transactions += ceil_div(units * kUnit, kBankRowBytes),
        sum.least += ceil_div(units * kUnit, kBankRowBytes);
  }
  if (!p.sound || run.options.places == nullptr ||
      !run.options.places->memories[(of_a ? n.a : n.b).value].known())
    return;
  if (!run.checked_operands.insert({p.step, of_a, (side.base - begin) % slot_bytes}).second) return;
  // All steps' parts beside each other: rows x (k of all).
  const int64_t k = side.k, width = k * static_cast<int64_t>(side.steps.size());
  std::vector<uint64_t> elements(static_cast<size_t>(side.rows * width), 0);
  for (size_t step = 0; step < side.steps.size(); ++step)
    for_each_unit(side.form, side.at(step), side.rows, k, side.element, [&](const Unit& u) {
      for (int64_t i = 0; i < kUnit / side.element; ++i) {
        const int64_t row = u.row + (side.form.k_major ? 0 : i), at = u.k + (side.form.k_major ? i : 0);
        const int64_t element = tile_element(run, of_a ? n.a : n.b, 0, element_of(u.address) + i);
        if (element >= 0)
          elements[static_cast<size_t>(row * width + static_cast<int64_t>(step) * k + at)] =
              (uint64_t{(of_a ? n.a : n.b).value} + 1) << 32 | static_cast<uint64_t>(element);
      }
    });
  check_order(run, access, thread, elements, static_cast<size_t>(side.rows), static_cast<size_t>(width));
}

void read_operand(const ClusterRun& run, const Product& p, bool of_a, size_t step, double* to) {
  const auto& n = run.node<thread::WarpgroupMma>(*p.step);
  const WarpgroupTables& atom = run.code.warpgroup_atoms[p.step->atom];
  const Side side = side_of(n, p, run.launch, atom, of_a);
  const int64_t k = side.k, count = kUnit / side.element;
  const bool floating = ir::is_float(side.memory.type);
  // Distances in the result of a step along the rows, and along k.
  const int64_t by_row = of_a ? k : 1, by_k = of_a ? 1 : side.rows;
  for_each_unit(side.form, side.at(step), side.rows, k, side.element, [&](const Unit& u) {
    double* at = to + u.row * by_row + u.k * by_k;
    const int64_t stride = side.form.k_major ? by_k : by_row;
    const std::byte* from = run.arena.data() + u.address;
    for (int64_t i = 0; i < count; ++i, at += stride, from += side.element) {
      const Cell c = decode_one(side.memory.type, from);
      *at = floating ? c.f : static_cast<double>(c.i);
    }
  });
}

}  // namespace tilegen::sim
