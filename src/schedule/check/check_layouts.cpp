// Layouts that a schedule gives: of values in registers, of values in memory, and of iterations.
#include <algorithm>

#include "infer/infer_layouts.h"
#include "layout/collision.h"
#include "schedule/check/check_schedule.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using layout::Fragment;
using layout::Layout;

namespace {

std::string number(int64_t v) { return std::to_string(v); }

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t extent : shape) text += (text.empty() ? "" : ", ") + number(extent);
  return "(" + text + ")";
}

// The digits of the thread coordinate do not overlap, so that a thread's number tells each of them.
bool tells_digits(const Fragment& f) {
  std::vector<layout::Digit> digits;
  for (const layout::Digit& d : f.map().digits())
    if (d.output == layout::kThread) digits.push_back(d);
  std::sort(digits.begin(), digits.end(), [](const auto& a, const auto& b) { return a.stride < b.stride; });
  int64_t below = 0;  // largest thread that the digits below reach
  for (const layout::Digit& d : digits) {
    if (d.stride <= below) return false;
    below += d.stride * (d.extent - 1);
  }
  return true;
}

// Why a fragment cannot be one of these threads over this shape; empty when it can. `most`: registers of a
// thread.
std::string fragment_refusal(const Fragment& f, const std::vector<int64_t>& shape, int64_t threads,
                             int64_t most) {
  if (f.shape() != shape)
    return "expected a layout of shape " + shape_text(shape) + ", got " + shape_text(f.shape());
  if (f.threads() != threads)
    return "expected one over the block's " + number(threads) + " threads, got " + number(f.threads());
  if (!tells_digits(f)) return "its thread digits overlap: a thread does not tell which elements it has";
  if (f.registers() > most)
    return "a thread has at most " + number(most) + " registers of it, got " + number(f.registers());
  if (has_collision(f.map(), layout::Domain::padded_box, false))
    return "two elements share a register of a thread";
  return "";
}

std::string memory_refusal(const Layout& l, const std::vector<int64_t>& shape, int64_t element_bytes,
                           int64_t most_bytes) {
  if (l.shape() != shape)
    return "expected a layout of shape " + shape_text(shape) + ", got " + shape_text(l.shape());
  if (l.outputs() != 1 || l.replicas() != 1) return "expected one offset for each element";
  const int64_t most = most_bytes / element_bytes;
  if (l.output_extent(0) > most)
    return "it takes " + number(l.output_extent(0)) + " elements, and on-chip memory holds " + number(most);
  if (has_collision(l, layout::Domain::padded_box, false)) return "two elements share a place";
  const layout::Swizzle& s = l.swizzle();
  if (s.none()) return "";
  if (l.element_bytes() != element_bytes)
    return "its swizzle is of elements of " + number(l.element_bytes()) + " bytes, and the buffer's have " +
           number(element_bytes);
  // Addresses change in their lower bits only, within pieces that the tile is made of.
  const int64_t piece = int64_t{1} << (s.base + s.bits);
  if (l.output_extent(0) * element_bytes % piece != 0)
    return "its swizzle reaches beyond the tile: " + number(l.output_extent(0) * element_bytes) +
           " bytes are no multiple of " + number(piece);
  return "";
}

class LayoutCheck {
 public:
  LayoutCheck(const plan::KernelSchedule& given, const ir::Program& p, const KernelOps& ops,
              const target::Target& t, int64_t threads)
      : given_(given), p_(p), ops_(ops), target_(t), threads_(threads) {}

  Checked run() {
    for (const analysis::Value& v : ops_.values)
      if (const plan::ValuePlan* g = plan::find_value(given_, v.name)) check_value(v, *g);
    for (const KernelOp& op : ops_.ops)
      if (const plan::OpPlan* g = plan::find_op(given_, op.path)) check_op(op, *g);
    return std::move(result_);
  }

 private:
  void refuse(const std::string& name, const std::string& field, const std::string& text,
              const std::string& why, const SourceLocation& where) {
    if (!result_) return;
    result_ = Error(DiagCode::schedule_illegal, name,
                    "the given `" + field + "` " + text + " is not possible: " + why,
                    "leave `" + field + "` out to have it planned", where);
  }

  static bool in_registers(const analysis::Value& v) {
    return v.scope == ir::MemScope::fragment || v.scope == ir::MemScope::local;
  }

  void check_value(const analysis::Value& v, const plan::ValuePlan& g) {
    const ir::Buffer& buffer = p_.buffer(v.buffer);
    const int64_t bytes = ir::dtype_bytes(buffer.type);
    const int64_t most =
        target_.addressable_registers() ? target_.shared_bytes / bytes : infer::kMaxRegisters;
    if (g.fragment) {
      const std::string why = in_registers(v)
                                  ? fragment_refusal(*g.fragment, v.shape, threads_, most)
                                  : "the buffer is in shared memory, and a fragment is of registers";
      if (!why.empty()) refuse(v.name, "fragment", g.fragment->to_text(), why, buffer.location);
    }
    if (g.memory) {
      const std::string why = in_registers(v) && target_.addressable_registers()
                                  ? "on " + target_.name + " the buffer is held as a fragment"
                                  : memory_refusal(*g.memory, v.shape, bytes, target_.shared_bytes);
      if (!why.empty()) refuse(v.name, "memory", g.memory->to_text(), why, buffer.location);
    }
  }

  void check_op(const KernelOp& op, const plan::OpPlan& g) {
    if (g.iteration) {
      const std::vector<int64_t> extents = op.form == analysis::OpForm::element
                                               ? op.view.extents
                                               : p_.as<ir::TileOp>(op.stmt)->operands[0].extents;
      int64_t points = 1;
      for (int64_t extent : extents) points *= extent;
      const std::string why =
          op.form == analysis::OpForm::contraction
              ? "a product has none, its atom tells which thread does what"
              : fragment_refusal(*g.iteration, extents, threads_, std::max(2 * points, infer::kMaxRegisters));
      if (!why.empty()) refuse(op.path, "iteration", g.iteration->to_text(), why, op.location);
    }
  }

  const plan::KernelSchedule& given_;
  const ir::Program& p_;
  const KernelOps& ops_;
  const target::Target& target_;
  const int64_t threads_;
  Checked result_ = Unit{};
};

}  // namespace

Checked check_layouts(const plan::KernelSchedule& given, const ir::Program& p, const KernelOps& ops,
                      const target::Target& t, int64_t threads) {
  return LayoutCheck(given, p, ops, t, threads).run();
}

}  // namespace tilegen::schedule
