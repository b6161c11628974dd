// Loads of tensors to registers of a warp, where a memory counter says how many are on their way: results
// come in the order of the loads. The thread program has no waits for them: the first use of a register is
// one, for its load and all before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace tilegen::sim {

struct ClusterRun;
struct Warp;

struct LoadsUnderWay {
  struct Issue {
    uint32_t access = 0;
    int64_t products = 0;  // matrix instructions of the warp before it
  };
  std::vector<uint32_t> of_register;  // number of the load that a register waits for; empty: not counted
  std::deque<Issue> issues;           // not waited for, oldest first
  uint32_t issued = 0;                // the newest load's number, from 1 on
  bool fresh = false;                 // what the step loaded is not in registers yet

  uint32_t landed() const { return issued - static_cast<uint32_t>(issues.size()); }
  void begin() {
    std::fill(of_register.begin(), of_register.end(), 0);
    issues.clear();
    issued = 0;
    fresh = false;
  }
};

// Where they are counted: an access of the lanes to a tensor's elements.
void issue_load(Warp& w, uint32_t access);
// An asynchronous copy of the lanes is counted with them; its number.
uint32_t issue_copy(Warp& w, uint32_t access);
void wait_for_copy(ClusterRun& run, Warp& w, uint32_t copy);
// What the step loads goes to these registers as it is.
void load_goes_to(Warp& w, size_t at);
// What the step loaded otherwise is used in it.
void use_loaded(ClusterRun& run, Warp& w);
// A register is read, or written by something else.
void use_register(ClusterRun& run, Warp& w, size_t at);

}  // namespace tilegen::sim
