// Which ops of a block must keep their order, and over how many iterations: the one dependence graph, of the
// body of a loop or of a kernel.
//
//   for i { copy A[i] -> s        copy -> gemm   flow,   distance 0   the product reads what the copy wrote
//           gemm s, b -> acc }    gemm -> copy   anti,   distance 1   the next copy overwrites what it read
//                                 gemm -> gemm   flow,   distance 1   (anti and output as well)
//
// requires: a checked program, collected ops.
// ensures: where two accesses, one of them a write, touch one element of a value or a tensor, there is an
//   edge from the op of the earlier one to the op of the later one, and its distance is not above the
//   iterations between them. Of the edges between two ops of one kind and place the least distance is kept:
//   it binds tightest. An op has no edge of distance 0 to itself.
// why here: the order of issue, copies that run ahead and slots all follow from it.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/footprint.h"

namespace tilegen::analysis {

enum class DependenceKind : uint8_t { flow, anti, output };

struct Dependence {
  OpId from, to;
  DependenceKind kind = DependenceKind::flow;
  Place place;
  int64_t distance = 0;  // iterations from the access of `from` to that of `to`; 0: in the same one
  bool exact = false;    // two iterations that far apart do meet; else it may be more, or never
  bool operator==(const Dependence&) const = default;
};

// What keeps accesses apart: nothing but their places, as what holds a whole value moves at once (waits,
// slots, registers of a product in flight); or the elements they touch.
enum class Granularity : uint8_t { value, element };

class DependenceGraph {
 public:
  // Of the body of a loop that runs in order.
  DependenceGraph(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop, Granularity granularity);
  // Of the kernel's body, which runs once.
  DependenceGraph(const ir::Program& p, const KernelOps& ops, const ir::Kernel& kernel,
                  Granularity granularity);

  std::vector<Dependence> edges() const;  // by from, to, kind, place
  std::vector<Dependence> from(OpId op) const;
  std::vector<Dependence> to(OpId op) const;

 private:
  using Edges = std::map<std::tuple<OpId, OpId, DependenceKind, Place>, std::pair<int64_t, bool>>;

  void index();
  void add(const Footprint& from, const Footprint& to, Edges& edges) const;
  static std::vector<Dependence> list(const Edges& edges);

  Footprints footprints_;
  Granularity granularity_;
  std::optional<int64_t> begin_, trips_;  // of the loop, where constant
  std::map<Place, std::vector<size_t>> by_place_;
  std::map<OpId, std::vector<size_t>> by_op_;
};

// The graphs of a kernel's loops, each made when it is first asked for. Threads do not share one.
class LoopDependences {
 public:
  LoopDependences(const ir::Program& p, const KernelOps& ops) : p_(p), ops_(ops) {}
  // At the granularity of values.
  const DependenceGraph& of(ir::StmtId loop);

 private:
  const ir::Program& p_;
  const KernelOps& ops_;
  std::map<ir::StmtId, DependenceGraph> graphs_;
};

}  // namespace tilegen::analysis
