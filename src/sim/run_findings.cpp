#include "sim/run_findings.h"

#include "sim/cluster_run.h"

namespace tilegen::sim {

namespace {

// What it is called that nothing orders an access with that of another thread, or of an engine.
FindingKind race_kind(const ClusterRun& run, int64_t other_thread) {
  switch (run.engines.kind(static_cast<int>(other_thread / run.lanes))) {
    case Party::product:
      return FindingKind::operand_in_flight;
    case Party::store_read:
      return FindingKind::async_source_changed;
    case Party::store_write:
    case Party::load:
      return FindingKind::async_not_waited;
    case Party::warp:
      break;
  }
  return FindingKind::data_race;
}

}  // namespace

// Threads are numbered through a cluster's blocks here; to the reader each block has its own.
void report(ClusterRun& run, Event e) {
  if (run.program.cluster > 1) {
    const int64_t threads = run.block_threads();
    e.block = run.block + e.thread / threads;
    if (e.other_block == run.block) e.other_block += e.other_thread / threads;
    e.thread %= threads;
    if (e.other_thread >= 0) e.other_thread %= threads;
  }
  run.findings.report(std::move(e));
}

void step_finding(ClusterRun& run, FindingKind kind, uint32_t stmt, int thread, std::string detail) {
  Event e;
  e.kind = kind;
  e.stmt = stmt;
  e.block = run.block;
  e.thread = thread;
  e.detail = std::move(detail);
  report(run, std::move(e));
}

void access_finding(ClusterRun& run, FindingKind kind, uint32_t access, int thread, int64_t element,
                    std::string detail, uint32_t other, int64_t other_thread) {
  Event e;
  e.kind = kind;
  e.access = access;
  e.other_access = other;
  e.block = run.block;
  e.thread = thread;
  e.other_thread = other_thread;
  if (other != kNothing) e.other_block = run.block;
  e.element = element;
  e.detail = std::move(detail);
  if (run.guarded && (kind == FindingKind::uninitialised_read || kind == FindingKind::foreign_read))
    run.held_back.push_back(std::move(e));
  else
    report(run, std::move(e));
}

void settle_reads(ClusterRun& run, LaneMask lanes) {
  run.guarded = false;
  for (Event& e : run.held_back)
    if (lanes >> e.thread % run.lanes & 1) report(run, std::move(e));
  run.held_back.clear();
}

void report_shared(ClusterRun& run, const Trouble& t, uint32_t access, int thread, int64_t at) {
  const MemoryView& m = run.memory(run.code.accesses[access].memory);
  const int64_t element = (run.in_arena(at) - m.arena_offset) / m.element;
  switch (t.conflict) {
    case Conflict::race: {
      const FindingKind kind = race_kind(run, t.other_thread);
      if (kind == FindingKind::data_race)
        return access_finding(run, kind, access, thread, element, {}, t.other_access, t.other_thread);
      const char* why = kind == FindingKind::operand_in_flight      ? "a product may still read it"
                        : kind == FindingKind::async_source_changed ? "the copy engine may still read it"
                                                                    : "the copy engine may still write it";
      return access_finding(run, kind, access, thread, element, why, t.other_access,
                            run.asked_by[static_cast<size_t>(t.other_thread / run.lanes)]);
    }
    case Conflict::unfenced:
      return access_finding(run, FindingKind::proxy_not_fenced, access, thread, element,
                            "no proxy fence of the thread that wrote it", t.other_access, t.other_thread);
    case Conflict::unfenced_read:
      return access_finding(run, FindingKind::proxy_not_fenced, access, thread, element,
                            "no proxy fence of the thread that read it", t.other_access, t.other_thread);
    case Conflict::unwritten:
      return access_finding(run, FindingKind::uninitialised_read, access, thread, element,
                            "nothing has written it in this block");
    case Conflict::foreign:
      return access_finding(run, FindingKind::foreign_read, access, thread, element,
                            "these bytes were last written as another tile", t.other_access, t.other_thread);
    case Conflict::in_flight: {
      const uint32_t copy = run.history.copy_at(at);
      const uint32_t other =
          copy != 0 ? run.copies[(copy - 1) / static_cast<uint32_t>(run.lanes)].dst_access : kNothing;
      return access_finding(run, FindingKind::async_not_waited, access, thread, element,
                            "an async copy to it was not waited for", other);
    }
    case Conflict::none:
      return;
  }
}

bool converged(ClusterRun& run, Warp& w, const Step& s, FindingKind kind) {
  if (w.mask == w.all) return true;
  step_finding(run, kind, s.stmt, first_thread(w, w.mask),
               "only " + std::to_string(std::popcount(w.mask)) + " of " +
                   std::to_string(std::popcount(w.all)) + " lanes of the warp reach it");
  return false;
}

int64_t same_for_lanes(ClusterRun& run, Warp& w, const Step& s, Ref r, const char* what) {
  const Operand value = w.values.operand(r);
  const int first = std::countr_zero(w.mask);
  for (int l = first; r.stride() != 0 && l < run.lanes; ++l)
    if ((w.mask >> l & 1) != 0 && value[l].i != value[first].i) {
      step_finding(run, FindingKind::divergent_operand, s.stmt, thread_of(w, l),
                   std::string(what) + " differs from that of lane " + std::to_string(first));
      break;
    }
  return value[first].i;
}

}  // namespace tilegen::sim
