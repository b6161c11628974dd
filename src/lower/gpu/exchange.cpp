// Values handed from one layout over threads and registers to another.
#include "lower/gpu/exchange.h"

#include <algorithm>
#include <map>

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

constexpr int64_t kWordBytes = 4;  // that a shuffle moves

// Elements that follow one another in the registers of both, on one lane each: what both begin with.
int64_t common_run(const Fragment& from, const Fragment& to, ir::DType type) {
  const auto fastest = [](const Fragment& f) -> const layout::Digit* {
    for (const layout::Digit& d : f.map().digits())
      if (d.output == layout::kRegister && d.stride == 1 && d.dim != layout::kReplica) return &d;
    return nullptr;
  };
  const layout::Digit *a = fastest(from), *b = fastest(to);
  if (!a || !b || a->dim != b->dim || a->weight != b->weight) return 1;
  int64_t run = 1;
  const auto divides = [&](int64_t n) {
    return a->extent % n == 0 && b->extent % n == 0 &&
           to.shape()[static_cast<size_t>(a->dim)] % (a->weight * n) == 0;
  };
  while (2 * run * ir::dtype_bytes(type) <= kWordBytes && divides(2 * run)) run *= 2;
  return run;
}

// The lane of the warp that has the element.
ExprId lane_of(LoweringContext& k, const ThreadDigits& sources, const std::vector<ExprId>& point) {
  ir::ExprPool& e = k.out.exprs;
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
  return k.simplified(lane);
}

// Where `index` is `wanted` of `candidates`, which lie evenly or not; equal questions are equal expressions.
ExprId is_candidate(LoweringContext& k, ExprId index, const std::vector<int64_t>& candidates, size_t wanted) {
  ir::ExprPool& e = k.out.exprs;
  const int64_t first = candidates[0], step = candidates[1] - first;
  for (size_t i = 1; i < candidates.size(); ++i)
    if (candidates[i] != first + static_cast<int64_t>(i) * step)
      return k.simplified(e.binary(ir::ExprOp::eq, index, e.const_int(candidates[wanted])));
  const ExprId place = k.simplified(e.floordiv(e.add(index, -first), e.const_int(step)));
  return k.simplified(e.binary(ir::ExprOp::eq, place, e.const_int(static_cast<int64_t>(wanted))));
}

// Registers of `to`, as many at once as a word holds and one lane has in a row. The lane that holds them
// differs by thread; where the registers it has there differ too, each candidate is passed round, all that a
// word holds in one, and the right one kept.
void exchange_lanes(LoweringContext& k, const FragmentView& from, const FragmentView& to,
                    const std::string& path, thread::Block& out) {
  ir::ExprPool& e = k.out.exprs;
  const ir::DType type = k.out.memory(from.memory).type;
  const ThreadDigits threads = thread_digits(k, *to.fragment), sources = thread_digits(k, *from.fragment);
  const int64_t run = common_run(*from.fragment, *to.fragment, type);
  std::vector<layout::Digit> registers, spread;
  int64_t weight = 0;  // between elements of a run, along dimension `along`
  size_t along = 0;
  for (layout::Digit d : to.fragment->map().digits()) {
    if (d.dim == layout::kReplica) continue;
    if (run > 1 && d.output == layout::kRegister && d.stride == 1) {
      along = static_cast<size_t>(d.dim), weight = d.weight;
      d.extent /= run, d.weight *= run;
    }
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
  std::map<int64_t, MemoryId> passed_of;  // by elements
  const auto load = [&](MemoryId memory, int64_t index) {
    return e.load(memory, type, std::vector<ExprId>{e.const_int(index)});
  };
  thread::Block body;
  std::vector<int64_t> value(registers.size(), 0);
  do {
    std::vector<ExprId> point = own;
    std::vector<int64_t> base(point.size(), 0);
    for (size_t i = 0; i < registers.size(); ++i)
      base[static_cast<size_t>(registers[i].dim)] += value[i] * registers[i].weight;
    for (size_t d = 0; d < point.size(); ++d) point[d] = k.simplified(e.add(point[d], base[d]));
    const ExprId lane = lane_of(k, sources, point);
    ExprId inside;
    const ExprId source = register_index(k, *from.fragment, point, &inside);
    const std::set<int64_t> found = registers_of(*from.fragment, spread, base);
    if (found.empty()) continue;  // places beyond the tile, which no element is in
    const std::vector<int64_t> candidates(found.begin(), found.end());
    const auto count = static_cast<int64_t>(candidates.size()) * run;
    if (!passed_of.count(count)) passed_of[count] = add_registers(k, "passed", type, count);
    const MemoryId passed = passed_of[count];
    for (int64_t i = 0; i < count; ++i)
      body.push_back(k.out.add(
          thread::Shuffle{thread::Shuffle::Mode::indexed, passed, e.const_int(i),
                          load(from.memory, candidates[static_cast<size_t>(i / run)] + i % run), lane},
          path));
    for (size_t c = 0; c < candidates.size(); ++c) {
      const ExprId mine = c == 0 ? ExprId() : is_candidate(k, source, candidates, c);
      for (int64_t i = 0; i < run; ++i) {
        std::vector<ExprId> element = point;
        element[along] = k.simplified(e.add(element[along], i * weight));
        store_register(k, to, element, load(passed, static_cast<int64_t>(c) * run + i), mine, body, path);
      }
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

namespace {

// The element's register on its lane: a part that is told once loops are unrolled, and those that it may be
// beyond that, with the part of the index that tells them apart.
struct LaneRegister {
  ExprId fixed, other;
  std::vector<int64_t> others = {0};
};

LaneRegister lane_register(LoweringContext& k, const Fragment& f, std::span<const ExprId> indices) {
  ir::ExprPool& e = k.out.exprs;
  LaneRegister r{e.const_int(0), e.const_int(0)};
  for (const layout::Digit& d : f.map().digits()) {
    if (d.output != layout::kRegister || d.dim == layout::kReplica || d.stride == 0) continue;
    ExprId digit = e.floordiv(indices[static_cast<size_t>(d.dim)], e.const_int(d.weight));
    if (d.weight * d.extent < f.map().padded_extent(d.dim)) digit = e.floormod(digit, e.const_int(d.extent));
    const ExprId part = k.simplified(e.mul(digit, d.stride));
    ExprId& sum = fixed_index(k, part) ? r.fixed : r.other;
    sum = e.add(sum, part);
    if (fixed_index(k, part)) continue;
    std::vector<int64_t> more;
    for (int64_t value = 0; value < d.extent; ++value)
      for (int64_t at : r.others) more.push_back(at + value * d.stride);
    r.others = std::move(more);
  }
  r.fixed = k.simplified(r.fixed), r.other = k.simplified(r.other);
  return r;
}

}  // namespace

ExprId load_from_lane(LoweringContext& k, const FragmentView& from, std::span<const ExprId> indices,
                      thread::Block& out) {
  using ir::DType;
  using ir::ExprOp;
  ir::ExprPool& e = k.out.exprs;
  const DType type = k.out.memory(from.memory).type;
  const ExprId zero = e.const_int(0);
  const ExprId lane = lane_of(k, thread_digits(k, *from.fragment), {indices.begin(), indices.end()});
  const auto taken = [&](ExprId value) {
    const DType word = e.type(value);
    const MemoryId register_taken = add_registers(k, "taken", word, 1);
    out.push_back(k.out.add(
        thread::Shuffle{thread::Shuffle::Mode::indexed, register_taken, zero, value, lane}, k.at.origin));
    return e.load(register_taken, word, std::vector<ExprId>{zero});
  };
  const auto brought = [&](ExprId own) {
    if (ir::dtype_bytes(type) <= kWordBytes) return taken(own);
    // Two words, the lower one first.
    const ExprId bits = type == DType::u64 ? own : e.bitcast(DType::u64, own);
    const ExprId width = e.const_int(8 * kWordBytes, DType::u64);
    const ExprId low = e.cast(DType::u64, taken(e.cast(DType::u32, bits)));
    const ExprId high = e.cast(DType::u64, taken(e.cast(DType::u32, e.binary(ExprOp::shr, bits, width))));
    const ExprId both_words = e.binary(ExprOp::bit_or, e.binary(ExprOp::shl, high, width), low);
    return type == DType::u64 ? both_words : e.bitcast(type, both_words);
  };
  const LaneRegister r = lane_register(k, *from.fragment, indices);
  ExprId value;
  for (int64_t other : r.others) {
    const ExprId at = k.simplified(e.add(r.fixed, e.const_int(other)));
    const ExprId found = brought(e.load(from.memory, type, std::vector<ExprId>{at}));
    value = value ? e.select(e.binary(ExprOp::eq, r.other, e.const_int(other)), found, value) : found;
  }
  return value;
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
