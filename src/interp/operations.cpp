#include "interp/operations.h"

#include <algorithm>

#include "ir/op_kinds.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::interp {

Operations::Operations(Execution& run, const ir::Program& p, const expand::ScheduledKernel& k)
    : run_(run), p_(p), k_(k) {}

const analysis::KernelOp* Operations::op_of(ir::StmtId stmt) const {
  for (const analysis::KernelOp& op : k_.ops->ops)
    if (op.stmt == stmt) return &op;
  return nullptr;
}

std::string Operations::use_text(const Use& u) const {
  return "use " + std::to_string(u.number) + " of pipeline '" +
         name_of(k_.pipelines[static_cast<size_t>(u.pipeline)]) + "'";
}

void Operations::fail(ir::StmtId at, std::string message) {
  run_.evaluator().fail({DiagCode::internal_error, std::move(message), "report the program and its target"});
  if (at.valid()) run_.blame(at);
}

// Buffers are the tiles' until the same is done again.
void Operations::exchange(const std::vector<Operation::Access>& accesses) {
  for (const Operation::Access& a : accesses)
    if (a.place.tile) std::swap(run_.buffers()[a.buffer.value], a.place.tile->storage);
}

void Operations::with_scalars(ir::StmtId stmt, const Places& places, const std::function<void()>& work) {
  Operation reads;
  reads.stmt = stmt;
  for (const auto& [where, value] : k_.ops->scalar_reads)
    if (where.first == stmt && value.valid())
      reads.accesses.push_back({where.second, places(value), true, false});
  check_operands(reads);
  if (run_.failed()) return;
  exchange(reads.accesses);
  work();
  exchange(reads.accesses);
  if (run_.failed()) run_.blame(stmt);
}

std::unique_ptr<Operation> Operations::prepare(ir::StmtId stmt, bool overwrite, const Places& places) {
  auto o = std::make_unique<Operation>();
  o->stmt = stmt;
  const analysis::KernelOp* op = op_of(stmt);
  for (const analysis::OpAccess& a : op->accesses) {
    if (!a.value.valid()) continue;
    const Place place = places(a.value);
    const bool drops = overwrite && op->form == analysis::OpForm::contraction && a.write;
    const auto known = std::find_if(o->accesses.begin(), o->accesses.end(),
                                    [&](const Operation::Access& k) { return k.buffer == a.buffer; });
    if (known == o->accesses.end())
      o->accesses.push_back({a.buffer, place, a.read && !drops, a.write});
    else if (known->place.tile != place.tile)
      fail(stmt, "an operation reads and writes one buffer as two values");
    else
      known->read = known->read || (a.read && !drops), known->write = known->write || a.write;
  }
  if (const auto* tile_op = p_.as<ir::TileOp>(stmt)) {
    o->meaning = *tile_op;
    if (overwrite && op->form == analysis::OpForm::contraction) o->meaning.attrs[ir::gemm_attr::clear] = 1;
    with_scalars(stmt, places, [&] {
      run_.evaluator().begin_step();
      o->sink = std::make_unique<OpSink>(p_, run_.evaluator(), o->meaning);
    });
  }
  return o;
}

void Operations::check_read(const Operation& o, const Place& place) {
  const Tile& t = *place.tile;
  if (run_.failed()) return;
  if (place.use.pipeline < 0) {
    if (t.filling > 0) fail(o.stmt, "a tile is read whose copy is not waited for");
  } else if (t.use != place.use) {
    fail(o.stmt, use_text(place.use) + " is read, and its slot has " +
                     (t.use.pipeline < 0 ? "nothing" : use_text(t.use)));
  } else if (t.filling > 0) {
    fail(o.stmt, use_text(place.use) + " is read before its copies are waited for");
  }
}

void Operations::check_operands(const Operation& o) {
  for (const Operation::Access& a : o.accesses)
    if (a.read && a.place.tile) check_read(o, a.place);
}

// Slots of a ring that threads or their own copies fill have, with the first write of a use, nothing of the
// use before.
void Operations::begin_write(const Operation& o, const Place& place, bool copy) {
  Tile& t = *place.tile;
  if (run_.failed()) return;
  if (place.use.pipeline < 0 || (place.handed && !copy)) return check_read(o, place);
  if (t.use == place.use && (copy || t.filling == 0)) return;
  if (t.readers > 0 || t.filling > 0)
    return fail(o.stmt, use_text(place.use) + " is filled while " + use_text(t.use) +
                            " in its slot is still " + (t.readers > 0 ? "read" : "copied"));
  t.storage.forget();
  t.use = place.use;
}

void Operations::run(Operation& o) {
  if (run_.failed()) return;
  exchange(o.accesses);
  run_.evaluator().begin_step();
  o.sink ? ops::op_def(o.meaning.kind).reference(o.meaning, *o.sink) : run_.run_statement(o.stmt);
  exchange(o.accesses);
  if (run_.failed()) run_.blame(o.stmt);
}

void Operations::execute(Operation& o) {
  check_operands(o);
  for (const Operation::Access& a : o.accesses)
    if (a.write && a.place.tile) begin_write(o, a.place, false);
  run(o);
}

void Operations::issue_copy(Operation& o) {
  check_operands(o);
  for (const Operation::Access& a : o.accesses)
    if (a.write && a.place.tile) begin_write(o, a.place, true);
  if (!o.sink) run(o);
  for (const Operation::Access& a : o.accesses) {
    if (!a.place.tile) continue;
    a.place.tile->readers += a.read;
    a.place.tile->filling += a.write;
  }
  o.under_way = true;
}

void Operations::issue_product(Operation& o) {
  check_operands(o);
  for (const Operation::Access& a : o.accesses) {
    if (a.read) ++a.place.tile->readers;
    if (a.write && !a.read && a.place.use.pipeline >= 0) begin_write(o, a.place, false);
  }
  o.under_way = true;
}

void Operations::finish(Operation& o) {
  if (!o.under_way || run_.failed()) return;
  o.under_way = false;
  const bool product = o.sink && op_of(o.stmt)->form == analysis::OpForm::contraction;
  for (const Operation::Access& a : o.accesses) {
    if (!a.place.tile) continue;
    a.place.tile->readers -= a.read;
    if (!product) a.place.tile->filling -= a.write;
  }
  check_operands(o);
  if (o.sink) run(o);
}

}  // namespace tilegen::interp
