// Boxes that warps copy together (ir/bulk_copy.h): chunks of the box are dealt to the threads that come by.
#include "ir/bulk_copy.h"
#include "ir/draft_resolver.h"
#include "ir/draft_threads.h"
#include "ir/store_parts.h"
#include "support/checked.h"

namespace tilegen::ir {

namespace {

constexpr int64_t kWarp = 32;

// The copy engine brings rows behind each other. What a tile's annotations say stays.
void lay_out_in_rows(Program& p, BufferId id, const SourceLocation& location) {
  Buffer& tile = p.buffers[id.value];
  for (const Annotation& a : tile.annotations)
    if (a.key == "layout" || a.key == "swizzle" || a.key == "padding") return;
  const std::vector<int64_t> shape = p.tile_shape(id);
  std::string extents, digits;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    extents = std::to_string(shape[d]) + (extents.empty() ? "" : ",") + extents;
    if (shape[d] == 1) continue;
    digits = "d" + std::to_string(d) + "/1%" + std::to_string(shape[d]) + "*" + std::to_string(stride) +
             (digits.empty() ? "" : " + ") + digits;
  }
  tile.annotations.push_back({"layout", {"(" + extents + ") -> [0: " + digits + "]"}, location});
}

}  // namespace

void DraftResolver::run_bulk_copy(StmtId s, Block& out) {
  const int64_t at = uses_.position(s);
  keep_before_writes(writes_of(s), at, threads_->body);
  end_part(out, at - 1);
  if (!errors_.empty()) return;
  const std::optional<ComingBy> by = guarded_threads();
  if (!by || by->elected || by->threads.first % kWarp != 0 || by->threads.count % kWarp != 0)
    return error(DiagCode::misplaced_statement,
                 "copy_bulk stands under a condition that does not say by the threads' numbers alone which "
                 "warps it is of, one behind the other",
                 "let all lanes of whole warps come by: if warp == 4 { copy_bulk ... }");
  const auto [first, count] = by->threads;
  if (count == 0) return;
  const Loop& written = std::get<Loop>(written_[s.value].node);
  const Store& box_store = std::get<Store>(written_[written.body.front().value].node);
  std::vector<int64_t> box;
  for (ExprId e : written.extents) p_.exprs.is_const_int(e, &box.emplace_back(1));
  for (VarId v : written.vars) values_[v] = p_.exprs.const_int(0);
  Store store = box_store;
  visit_exprs(store, [&](ExprId& e) { e = resolved(e); });
  std::vector<ExprId> places = store.indices;
  for (ExprId e : p_.exprs.indices(store.value)) places.push_back(e);
  for (ExprId e : places)
    if (!is_alike(e, Of::block)) {
      for (VarId v : written.vars) values_.erase(v);
      return error(DiagCode::misplaced_statement,
                   "copy_bulk copies a box whose place may differ between the threads of the block",
                   "let constants, dims, block indices and counters of loops give the place: the warps "
                   "copy one box together");
    }
  lay_out_in_rows(p_, store.buffer, location_);
  // One loop over the rounds, and in it one over the threads and the elements of a chunk.
  const int64_t chunk = bulk_chunk(box.back(), dtype_bytes(p_.buffer(store.buffer).type));
  int64_t chunks = 1;
  for (int64_t n : box) chunks *= n;
  chunks /= chunk;
  const auto variable = [&](const std::string& name) {
    Var v;
    v.name = name;
    v.location = location_;
    p_.vars.push_back(std::move(v));
    return VarId(p_.vars.size() - 1);
  };
  Loop rounds;
  rounds.kind = LoopKind::serial;
  rounds.begin = p_.exprs.const_int(0);
  rounds.extents = {p_.exprs.const_int(ceil_div(chunks, count))};
  rounds.vars = {variable("round")};
  Loop loop = threads_->head;
  std::vector<int64_t> extents;
  ExprId thread = p_.exprs.const_int(0), above = thread;  // above: without the last extent
  for (size_t d = 0; d < loop.vars.size(); ++d) {
    p_.exprs.is_const_int(loop.extents[d], &extents.emplace_back(1));
    const Var var = p_.var(loop.vars[d]);
    loop.vars[d] = VarId(p_.vars.size());
    p_.vars.push_back(var);
    above = thread;
    thread = p_.exprs.add(p_.exprs.mul(thread, extents.back()), p_.exprs.var(loop.vars[d]));
  }
  loop.vars.push_back(variable("part"));
  loop.extents.push_back(p_.exprs.const_int(chunk));
  ExprPool& pool = p_.exprs;
  ExprId lane = pool.floormod(thread, pool.const_int(kWarp)),
         warp = pool.floordiv(thread, pool.const_int(kWarp));
  if (extents.back() == kWarp && extents.size() > 1) {
    lane = pool.var(loop.vars[extents.size() - 1]);
    warp = above;
  }
  warp = pool.add(pool.mul(pool.var(rounds.vars[0]), count / kWarp),
                  pool.sub(warp, pool.const_int(first / kWarp)));
  const ExprId number = pool.add(pool.mul(warp, kWarp), lane);
  const auto coordinates = bulk_coordinates(pool, box, chunk, warp, lane, pool.var(loop.vars.back()));
  for (size_t d = 0; d < box.size(); ++d) values_[written.vars[d]] = coordinates[d];
  store = box_store;
  visit_exprs(store, [&](ExprId& e) { e = resolved(e); });
  for (VarId v : written.vars) values_.erase(v);
  ExprId guard;
  const std::vector<VarId> threads(loop.vars.begin(), loop.vars.end() - 1);
  if (threads_->guard.valid())
    guard = OfPart(p_.exprs, threads_->head.vars, threads).rewrite(threads_->guard);
  if (chunks % count != 0) {
    const ExprId inside = p_.exprs.lt(number, p_.exprs.const_int(chunks));
    guard = guard.valid() ? p_.exprs.logical_and(guard, inside) : inside;
  }
  if (guard.valid()) {
    Branch guarded{guard, {}, {}};
    emit(std::move(store), guarded.then_body);
    emit(std::move(guarded), loop.body);
  } else {
    emit(std::move(store), loop.body);
  }
  Annotations annotations = in_thread_order(extents, location_, chunk);
  annotations.insert(annotations.begin(), {"asynchronous", {"true"}, location_});
  const StmtId copies = emit(std::move(loop), rounds.body, s);
  p_.stmts[copies.value].annotations = std::move(annotations);
  const StmtId made = emit(std::move(rounds), out);
  Annotation named{std::string(kBulk), {}, location_};
  for (int64_t n : box) named.values.push_back(std::to_string(n));
  p_.stmts[made.value].annotations = {std::move(named)};
  threads_->first = p_.stmts.size();
}

}  // namespace tilegen::ir
