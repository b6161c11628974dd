// Values handed from one layout over threads and registers to another.
#include "lower/gpu/exchange.h"

#include <algorithm>

#include "analysis/exchange.h"
#include "lower/addressing.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/iteration.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

using layout::Fragment;

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

void exchange_scratch(LoweringContext& k, const FragmentView& from, const FragmentView& to,
                      const std::string& path, thread::Block& out) {
  const ir::DType type = k.out.memory(from.memory).type;
  const layout::Layout place = analysis::exchange_layout(from.fragment->shape(), type, k.in.target);
  const MemoryId memory = scratch_memory(k, path, type, place.output_extent(0));
  put_in_memory(k, from, place, memory, path, out);
  fetch_from_memory(k, to, place, memory, path, out);
}

// One register of `to` after the other. The lane that holds its element differs by thread; where the register
// it has there differs too, each candidate is passed round and the right one kept.
void exchange_lanes(LoweringContext& k, const FragmentView& from, const FragmentView& to,
                    const std::string& path, thread::Block& out) {
  ir::ExprPool& e = k.out.exprs;
  const ir::DType type = k.out.memory(from.memory).type;
  const ThreadDigits threads = thread_digits(k, *to.fragment), sources = thread_digits(k, *from.fragment);
  std::vector<layout::Digit> registers, spread;
  for (const layout::Digit& d : to.fragment->map().digits()) {
    if (d.dim == layout::kReplica) continue;
    (d.output == layout::kThread && d.stride > 0 ? spread : registers).push_back(d);
  }
  auto mark = k.ctx.mark();
  Nest nest;
  std::vector<ExprId> own(static_cast<size_t>(to.fragment->rank()), e.const_int(0));
  for (const ThreadDigit& t : threads.digits) {
    if (t.digit.dim == layout::kReplica) continue;
    const VarId var = k.out.add_var("t" + std::to_string(k.out.vars.size()), ir::VarKind::loop);
    k.ctx.bind(var, 0, t.digit.extent - 1);
    nest.thread_digits[var] = t.value;
    ExprId& at = own[static_cast<size_t>(t.digit.dim)];
    at = e.add(at, e.mul(e.var(var), t.digit.weight));
  }
  const MemoryId passed = add_registers(k, "passed", type, 1);
  thread::Block body;
  std::vector<int64_t> value(registers.size(), 0);
  do {
    std::vector<ExprId> point = own;
    std::vector<int64_t> base(point.size(), 0);
    for (size_t i = 0; i < registers.size(); ++i)
      base[static_cast<size_t>(registers[i].dim)] += value[i] * registers[i].weight;
    for (size_t d = 0; d < point.size(); ++d) point[d] = k.simplified(e.add(point[d], base[d]));
    ExprId lane = e.const_int(0);
    for (const ThreadDigit& s : sources.digits) {
      const layout::Digit& d = s.digit;
      if (d.stride >= k.in.target.warp) continue;
      ExprId digit = s.value;
      if (d.dim != layout::kReplica)
        digit = e.floormod(e.floordiv(point[static_cast<size_t>(d.dim)], e.const_int(d.weight)),
                           e.const_int(d.extent));
      if (d.stride * d.extent > k.in.target.warp)
        digit = e.floormod(digit, e.const_int(k.in.target.warp / d.stride));
      lane = e.add(lane, e.mul(digit, d.stride));
    }
    lane = k.simplified(lane);
    ExprId inside;
    const ExprId source = register_index(k, *from.fragment, point, &inside);
    const std::set<int64_t> candidates = registers_of(*from.fragment, spread, base);
    for (int64_t r : candidates) {
      const ExprId element = e.load(from.memory, type, std::vector<ExprId>{e.const_int(r)});
      body.push_back(k.out.add(
          thread::Shuffle{thread::Shuffle::Mode::indexed, passed, e.const_int(0), element, lane}, path));
      const ExprId mine =
          candidates.size() == 1 ? ExprId() : k.simplified(e.binary(ir::ExprOp::eq, source, e.const_int(r)));
      store_register(k, to, point, e.load(passed, type, std::vector<ExprId>{e.const_int(0)}), mine, body,
                     path);
    }
  } while (next(value, registers));
  finish_thread_nest(k, nest, body);
  k.ctx.rollback(mark);
  out.insert(out.end(), body.begin(), body.end());
}

}  // namespace

MemoryId planned_memory(LoweringContext& k, plan::Storage storage, const std::string& op, ir::DType type,
                        int64_t elements, const std::string& value) {
  thread::Memory m;
  m.name = op + (value.empty() ? std::string(".") + plan::storage_name(storage) : "." + value);
  m.space = thread::Space::shared;
  m.type = type;
  m.elements = elements;
  m.alignment = 16;
  const plan::MemoryPlan* place = plan::find_memory(k.in.schedule, storage, op, value);
  if (place && place->bytes >= elements * ir::dtype_bytes(type)) {
    m.arena_offset = place->offset;
    k.out.arena_bytes = std::max(k.out.arena_bytes, place->offset + place->bytes);
  } else {
    k.fail(DiagCode::schedule_illegal, op,
           "the schedule has no " + std::to_string(elements) + " elements of shared memory for it",
           "plan the program for this target");
  }
  return k.out.add_memory(std::move(m));
}

MemoryId scratch_memory(LoweringContext& k, const std::string& path, ir::DType type, int64_t elements) {
  return planned_memory(k, plan::Storage::scratch, path, type, elements);
}

void exchange(LoweringContext& k, layout::ConversionKind planned, const FragmentView& from,
              const FragmentView& to, const std::string& path, thread::Block& out) {
  const ir::DType type = k.out.memory(from.memory).type;
  const auto kind = analysis::planned_kind(planned, *from.fragment, *to.fragment, k.in.target, type);
  if (!analysis::may_convert(kind, *from.fragment, *to.fragment, k.in.target, type))
    return k.fail(DiagCode::schedule_illegal, path,
                  std::string("a conversion by ") + layout::conversion_name(kind) + " from " +
                      from.fragment->to_text() + " to " + to.fragment->to_text() +
                      ": threads need what this way does not bring them",
                  "leave `conversions` out to have them planned");
  if (k.facts) return;  // of the walks of ops
  if (kind == layout::ConversionKind::shuffle) return exchange_lanes(k, from, to, path, out);
  if (kind == layout::ConversionKind::shared_bounce) return exchange_scratch(k, from, to, path, out);
  emit_walk(
      k, {*to.fragment, 1, path},
      [&](const Nest& nest, thread::Block& body) {
        store_register(k, to, nest.point, load_register(k, from, nest.point), ExprId(), body, path);
      },
      out);
}

void put_in_memory(LoweringContext& k, const FragmentView& from, const layout::Layout& place, MemoryId memory,
                   const std::string& path, thread::Block& out) {
  const int64_t vector = k.in.target.vector_bytes / ir::dtype_bytes(k.out.memory(memory).type);
  emit_walk(
      k, {*from.fragment, vector, path},
      [&](const Nest& nest, thread::Block& body) {
        const ExprId predicate = both(k, nest.writer, both(k, ExprId(), nest.inside));
        body.push_back(
            k.out.add(thread::Store{memory, layout_index(k, place, 0, nest.point),
                                    load_register(k, from, nest.point), predicate, false, ExprId()},
                      path));
      },
      out);
}

void fetch_from_memory(LoweringContext& k, const FragmentView& to, const layout::Layout& place,
                       MemoryId memory, const std::string& path, thread::Block& out) {
  const ir::DType type = k.out.memory(memory).type;
  emit_walk(
      k, {*to.fragment, k.in.target.vector_bytes / ir::dtype_bytes(type), path},
      [&](const Nest& nest, thread::Block& body) {
        std::vector<ExprId> load = {layout_index(k, place, 0, nest.point)};
        if (const ExprId inside = both(k, ExprId(), nest.inside)) load.push_back(inside);
        store_register(k, to, nest.point, k.out.exprs.load(memory, type, load), ExprId(), body, path);
      },
      out);
}

}  // namespace tilegen::lower
