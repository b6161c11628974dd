#include "ir/atomic_fetch.h"

#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

// Extents of 1 may be left out.
Extents without_ones(const Extents& extents) {
  Extents rest;
  for (const int64_t extent : extents)
    if (extent != 1) rest.push_back(extent);
  return rest;
}

// The region's element at a point of what without_ones() leaves.
Exprs element_at(ExprPool& e, const Region& r, const Exprs& point) {
  Exprs whole;
  size_t next = 0;
  for (const int64_t extent : r.extents) whole.push_back(extent == 1 ? e.const_int(0) : point[next++]);
  return element_of(e, r, whole);
}

std::optional<Diagnostic> refusal(const Program& p, const AtomicFetch& what, const Limits& limits) {
  const Buffer &dst = p.buffer(what.dst.buffer), &old = p.buffer(what.old.buffer);
  const std::string word(atomic_text(what.kind));
  const std::string into = word + " on " + region_text(p, what.dst);
  if (dst.scope != MemScope::global && dst.scope != MemScope::shared)
    return diagnostic(DiagCode::scope_not_allowed, into + ": expected a tensor or a shared tile",
                      "threads have registers of their own; combine values with reduce");
  const std::string mark = dst.constant ? "constant" : "readonly";
  if (dst.read_only)
    return diagnostic(DiagCode::write_to_input, into + ", which is " + mark, "declare it without " + mark);
  if (old.scope == MemScope::global)
    return diagnostic(
        DiagCode::scope_not_allowed,
        "the old values of " + into + " go to " + region_text(p, what.old) + ": expected an on-chip buffer",
        "take them into a tile and copy that");
  if (!takes_atomic(what.kind, dst.type))
    return diagnostic(DiagCode::dtype_mismatch,
                      into + ": there is no " + word + " of " + dtype_name(dst.type),
                      what.kind < AtomicKind::bit_and ? "use an integer, or a float of 16 bits or more"
                                                      : "bits are combined in integers");
  for (const Region* r : {&what.src, &what.old})
    if (const DType type = p.buffer(r->buffer).type; type != dst.type)
      return diagnostic(
          DiagCode::dtype_mismatch,
          into + ", which is " + dtype_name(dst.type) + ": " + region_text(p, *r) + " is " + dtype_name(type),
          "use one type; copy converts");
  for (const Region* r : {&what.src, &what.old})
    if (without_ones(r->extents) != without_ones(what.dst.extents))
      return diagnostic(DiagCode::shape_mismatch, region_text(p, *r) + " does not fit " + into,
                        "it has the extents " + extents_text(what.dst.extents) + ", or those without ones");
  if (what.dst.buffer == what.src.buffer || what.dst.buffer == what.old.buffer)
    return diagnostic(DiagCode::parallel_race,
                      into + ": '" + dst.name + "' is what it reads or where the old values go, too",
                      "use a tile of its own");
  return refuse_beyond_limits(p, {.statements = 4, .buffers = 1, .nodes = 128}, limits, into);
}

}  // namespace

std::optional<Diagnostic> add_atomic_fetch(Program& p, const AtomicFetch& what,
                                           const SourceLocation& location, Block& block,
                                           const Limits& limits) {
  if (auto wrong = refusal(p, what, limits)) return wrong;
  PointLoops loops(p, location, block);
  Extents extents = without_ones(what.dst.extents);
  if (extents.empty()) extents.push_back(1);
  const bool in_place =
      p.buffer(what.old.buffer).scope == MemScope::shared && what.old.buffer != what.src.buffer;
  const DType type = p.buffer(what.dst.buffer).type;
  const BufferId before = in_place ? what.old.buffer : loops.tile("before", MemScope::shared, type, extents);
  Exprs point = loops.begin(extents);
  Store store{what.dst.buffer, element_at(p.exprs, what.dst, point),
              loops.load(what.src.buffer, element_at(p.exprs, what.src, point))};
  store.atomic = what.kind;
  store.old = Store::OldValue{before, in_place ? element_at(p.exprs, what.old, point) : point};
  loops.store(std::move(store));
  if (in_place) return std::nullopt;
  point = loops.begin(extents);
  loops.store(what.old.buffer, element_at(p.exprs, what.old, point), loops.load(before, point));
  return std::nullopt;
}

}  // namespace tilegen::ir
