#include "sim/loads_under_way.h"

#include <algorithm>

#include "sim/cluster_run.h"

namespace tilegen::sim {

namespace {

void wait_for(ClusterRun& run, Warp& w, uint32_t load) {
  LoadsUnderWay& l = w.loads;
  run.counters.most_loads = std::max(run.counters.most_loads, static_cast<int64_t>(l.issues.size()));
  ++run.counters.load_waits;
  for (; l.landed() < load; l.issues.pop_front()) {
    AccessSum& sum = run.sums[l.issues.front().access];
    const int64_t products = w.matrix_instructions - l.issues.front().products;
    sum.ahead = sum.ahead < 0 ? products : std::min(sum.ahead, products);
  }
}

}  // namespace

void issue_load(Warp& w, uint32_t access) {
  ++w.loads.issued;
  w.loads.issues.push_back({access, w.matrix_instructions});
  w.loads.fresh = true;
}

uint32_t issue_copy(Warp& w, uint32_t access) {
  if (w.loads.of_register.empty()) return 0;
  w.loads.issues.push_back({access, w.matrix_instructions});
  return ++w.loads.issued;
}

void wait_for_copy(ClusterRun& run, Warp& w, uint32_t copy) {
  if (copy > w.loads.landed()) wait_for(run, w, copy);
}

void load_goes_to(Warp& w, size_t at) { w.loads.of_register[at] = w.loads.issued; }

void use_loaded(ClusterRun& run, Warp& w) {
  w.loads.fresh = false;
  wait_for(run, w, w.loads.issued);
}

void use_register(ClusterRun& run, Warp& w, size_t at) {
  uint32_t& load = w.loads.of_register[at];
  if (load > w.loads.landed()) wait_for(run, w, load);
  load = 0;
}

}  // namespace tilegen::sim
