// Values handed from one layout over threads and registers to another.
#include <algorithm>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

using layout::Fragment;

// Planned shared memory, seen as elements of `type`.
MemoryId KernelLowering::planned_memory(plan::Storage storage, const std::string& op, ir::DType type,
                                        int64_t elements, const std::string& value) {
  thread::Memory m;
  m.name = op + (value.empty() ? std::string(".") + plan::storage_name(storage) : "." + value);
  m.space = thread::Space::shared;
  m.type = type;
  m.elements = elements;
  m.alignment = 16;
  const plan::MemoryPlan* place = plan::find_memory(schedule_, storage, op, value);
  if (place && place->bytes >= elements * ir::dtype_bytes(type)) {
    m.arena_offset = place->offset;
    out_.arena_bytes = std::max(out_.arena_bytes, place->offset + place->bytes);
  } else {
    fail(DiagCode::schedule_illegal, op,
         "the schedule has no " + std::to_string(elements) + " elements of shared memory for it",
         "plan the program for this target");
  }
  return out_.add_memory(std::move(m));
}

MemoryId KernelLowering::scratch(const std::string& path, ir::DType type, int64_t elements) {
  return planned_memory(plan::Storage::scratch, path, type, elements);
}

void KernelLowering::exchange(layout::ConversionKind planned, const FragmentView& from,
                              const FragmentView& to, const std::string& path, thread::Block& out) {
  const ir::DType type = out_.memory(from.memory).type;
  const auto kind = analysis::planned_kind(planned, *from.fragment, *to.fragment, target_, type);
  if (!analysis::may_convert(kind, *from.fragment, *to.fragment, target_, type))
    return fail(DiagCode::schedule_illegal, path,
                std::string("a conversion by ") + layout::conversion_name(kind) + " from " +
                    from.fragment->to_text() + " to " + to.fragment->to_text() +
                    ": threads need what this way does not bring them",
                "leave `conversions` out to have them planned");
  if (kind == layout::ConversionKind::shuffle) return exchange_lanes(from, to, path, out);
  if (kind == layout::ConversionKind::shared_bounce) return exchange_scratch(from, to, path, out);
  emit_walk(
      {*to.fragment, 1, path},
      [&](const Nest& nest, thread::Block& body) {
        store_register(to, nest.point, load_register(from, nest.point), ExprId(), body, path);
      },
      out);
}

void KernelLowering::put_in_memory(const FragmentView& from, const layout::Layout& place, MemoryId memory,
                                   const std::string& path, thread::Block& out) {
  const int64_t vector = target_.vector_bytes / ir::dtype_bytes(out_.memory(memory).type);
  emit_walk(
      {*from.fragment, vector, path},
      [&](const Nest& nest, thread::Block& body) {
        const ExprId predicate = both(nest.writer, both(ExprId(), nest.inside));
        body.push_back(out_.add(thread::Store{memory, layout_index(place, 0, nest.point),
                                              load_register(from, nest.point), predicate, false, ExprId()},
                                path));
      },
      out);
}

void KernelLowering::fetch_from_memory(const FragmentView& to, const layout::Layout& place, MemoryId memory,
                                       const std::string& path, thread::Block& out) {
  const ir::DType type = out_.memory(memory).type;
  emit_walk(
      {*to.fragment, target_.vector_bytes / ir::dtype_bytes(type), path},
      [&](const Nest& nest, thread::Block& body) {
        std::vector<ExprId> load = {layout_index(place, 0, nest.point)};
        if (const ExprId inside = both(ExprId(), nest.inside)) load.push_back(inside);
        store_register(to, nest.point, out_.exprs.load(memory, type, load), ExprId(), body, path);
      },
      out);
}

void KernelLowering::exchange_scratch(const FragmentView& from, const FragmentView& to,
                                      const std::string& path, thread::Block& out) {
  const ir::DType type = out_.memory(from.memory).type;
  const layout::Layout place = analysis::exchange_layout(from.fragment->shape(), type, target_);
  const MemoryId memory = scratch(path, type, place.output_extent(0));
  put_in_memory(from, place, memory, path, out);
  fetch_from_memory(to, place, memory, path, out);
}

namespace {

// Every value of a set of digits, one after the other; false after the last.
bool next(std::vector<int64_t>& values, const std::vector<layout::Digit>& digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (++values[i] < digits[i].extent) return true;
    values[i] = 0;
  }
  return false;
}

// Registers that hold the elements at `base` plus any values of the digits.
std::set<int64_t> registers_of(const Fragment& f, const std::vector<layout::Digit>& digits,
                               const std::vector<int64_t>& base) {
  std::set<int64_t> registers;
  std::vector<int64_t> value(digits.size(), 0);
  do {
    std::vector<int64_t> at = base;
    for (size_t i = 0; i < digits.size(); ++i)
      at[static_cast<size_t>(digits[i].dim)] += value[i] * digits[i].weight;
    bool padding = false;
    for (size_t d = 0; d < at.size(); ++d) padding = padding || at[d] >= f.shape()[d];
    if (!padding) registers.insert(f.register_of(at));
  } while (next(value, digits));
  return registers;
}

}  // namespace

// One register of `to` after the other. The lane that holds its element differs by thread; where the register
// it has there differs too, each candidate is passed round and the right one kept.
void KernelLowering::exchange_lanes(const FragmentView& from, const FragmentView& to, const std::string& path,
                                    thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ir::DType type = out_.memory(from.memory).type;
  const ThreadDigits threads = thread_digits(*to.fragment), sources = thread_digits(*from.fragment);
  std::vector<layout::Digit> registers, spread;
  for (const layout::Digit& d : to.fragment->map().digits()) {
    if (d.dim == layout::kReplica) continue;
    (d.output == layout::kThread && d.stride > 0 ? spread : registers).push_back(d);
  }
  auto mark = ctx_.mark();
  Nest nest;
  std::vector<ExprId> own(static_cast<size_t>(to.fragment->rank()), e.const_int(0));
  for (const ThreadDigit& t : threads.digits) {
    if (t.digit.dim == layout::kReplica) continue;
    const VarId var = out_.add_var("t" + std::to_string(out_.vars.size()), ir::VarKind::loop);
    ctx_.bind(var, 0, t.digit.extent - 1);
    nest.thread_digits[var] = t.value;
    ExprId& at = own[static_cast<size_t>(t.digit.dim)];
    at = e.add(at, e.mul(e.var(var), t.digit.weight));
  }
  const MemoryId passed = add_registers("passed", type, 1);
  thread::Block body;
  std::vector<int64_t> value(registers.size(), 0);
  do {
    std::vector<ExprId> point = own;
    std::vector<int64_t> base(point.size(), 0);
    for (size_t i = 0; i < registers.size(); ++i)
      base[static_cast<size_t>(registers[i].dim)] += value[i] * registers[i].weight;
    for (size_t d = 0; d < point.size(); ++d) point[d] = simplified(e.add(point[d], base[d]));
    ExprId lane = e.const_int(0);
    for (const ThreadDigit& s : sources.digits) {
      const layout::Digit& d = s.digit;
      if (d.stride >= target_.warp) continue;
      ExprId digit = s.value;
      if (d.dim != layout::kReplica)
        digit = e.floormod(e.floordiv(point[static_cast<size_t>(d.dim)], e.const_int(d.weight)),
                           e.const_int(d.extent));
      if (d.stride * d.extent > target_.warp) digit = e.floormod(digit, e.const_int(target_.warp / d.stride));
      lane = e.add(lane, e.mul(digit, d.stride));
    }
    lane = simplified(lane);
    ExprId inside;
    const ExprId source = register_index(*from.fragment, point, &inside);
    const std::set<int64_t> candidates = registers_of(*from.fragment, spread, base);
    for (int64_t r : candidates) {
      const ExprId element = e.load(from.memory, type, std::vector<ExprId>{e.const_int(r)});
      body.push_back(out_.add(
          thread::Shuffle{thread::Shuffle::Mode::indexed, passed, e.const_int(0), element, lane}, path));
      const ExprId mine =
          candidates.size() == 1 ? ExprId() : simplified(e.binary(ir::ExprOp::eq, source, e.const_int(r)));
      store_register(to, point, e.load(passed, type, std::vector<ExprId>{e.const_int(0)}), mine, body, path);
    }
  } while (next(value, registers));
  finish_thread_nest(nest, body);
  ctx_.rollback(mark);
  out.insert(out.end(), body.begin(), body.end());
}

void KernelLowering::begin_copies(const analysis::KernelOp& op, const plan::OpPlan& plan,
                                  thread::Block& out) {
  for (const analysis::OpAccess& a : op.accesses) {
    if (a.value < 0 || copies_.count(a.value)) continue;
    const plan::ValuePlan& value = schedule_.values[static_cast<size_t>(a.value)];
    if (!value.fragment || std::find(plan.through_memory.begin(), plan.through_memory.end(), value.value) ==
                               plan.through_memory.end())
      continue;
    const ir::DType type = p_.buffer(a.buffer).type;
    Copy copy{analysis::copy_in_memory(value, type, target_), MemoryId()};
    copy.memory =
        planned_memory(plan::Storage::copy, op.path, type, copy.plan.memory->output_extent(0), value.value);
    if (!overwrites(op, a.value)) put_in_memory(held(a.value), *copy.plan.memory, copy.memory, op.path, out);
    copies_[a.value] = std::move(copy);
  }
}

void KernelLowering::end_copies(const analysis::KernelOp& op, thread::Block& out) {
  const std::map<int, Copy> copies = std::move(copies_);
  copies_.clear();
  for (const auto& [value, copy] : copies) {
    const bool written =
        std::any_of(op.accesses.begin(), op.accesses.end(),
                    [v = value](const analysis::OpAccess& a) { return a.value == v && a.write; });
    if (written) fetch_from_memory(held(value), *copy.plan.memory, copy.memory, op.path, out);
  }
}

// Brings what the op takes in another form into registers of its own; `end_conversions` brings back what it
// made.
void KernelLowering::begin_conversions(const analysis::KernelOp& op, thread::Block& out) {
  converted_.clear();
  if (op.form == analysis::OpForm::reduction) return;
  for (analysis::OpConversion& c :
       analysis::conversions_of(p_, ops_, op, schedule_.values, schedule_.conversions)) {
    const FragmentView held_as = held(c.value);
    forms_.push_back(std::make_unique<Fragment>(std::move(c.form)));
    const thread::Memory& m = out_.memory(held_as.memory);
    const ir::DType type = m.type;
    const FragmentView form = {add_registers(m.name + ".as", type, forms_.back()->registers()),
                               forms_.back().get()};
    clear_unheld(form, out, op.path);
    if (c.before) exchange(c.kind_before, held_as, form, op.path, out);
    op_conversions_.push_back({c.value, form, c.behind, c.kind_behind});
  }
  for (const ActiveConversion& c : op_conversions_) converted_[c.value] = c.form;
}

void KernelLowering::end_conversions(const analysis::KernelOp& op, thread::Block& out) {
  converted_.clear();
  for (const ActiveConversion& c : op_conversions_)
    if (c.behind) exchange(c.kind, c.form, held(c.value), op.path, out);
  op_conversions_.clear();
}

}  // namespace tilegen::lower
