#include "expand/preamble.h"

#include <algorithm>

#include "expand/versions.h"

namespace tilegen::expand {

namespace {

class PreambleMaker {
 public:
  explicit PreambleMaker(ScheduledKernel& k) : k_(k) {
    for (OpId i : k.ops->ops.ids())
      if (k.schedule->ops[i.index()].preamble.value_or(false)) copies_.insert(k.ops->ops[i].stmt);
  }

  void run() {
    if (copies_.empty()) return;
    std::vector<Block> preambles;
    for (Role& r : k_.roles) {
      preambles.emplace_back();
      if (r.kind == RoleKind::producer) preambles.back() = take_preambles(r.body);
    }
    const auto any = [](const Block& b) { return !b.empty(); };
    if (std::none_of(preambles.begin(), preambles.end(), any)) return;
    for (size_t i = 0; i < k_.roles.size(); ++i) {
      Block& body = k_.roles[i].body;
      preambles[i].push_back({GridDependencyWait{}});
      body.insert(body.begin(), std::make_move_iterator(preambles[i].begin()),
                  std::make_move_iterator(preambles[i].end()));
    }
  }

 private:
  Block take_preambles(Block& body) {
    Block preambles;
    for_each_block(body, [&](Block& b) {
      for (Stmt& s : b)
        if (auto* loop = std::get_if<Serial>(&s.node))
          if (Preamble early = take(*loop); !early.body.empty()) preambles.push_back({std::move(early)});
    });
    return preambles;
  }

  // The copies of a slot that the preamble makes come first behind its acquisition.
  Preamble take(Serial& loop) {
    Preamble early{loop.loop, 0, {}};
    Block rest;
    for (size_t i = 0; i < loop.body.size();) {
      const auto* acquire = std::get_if<Acquire>(&loop.body[i].node);
      size_t end = i + 1;
      if (acquire)
        while (end < loop.body.size() && !std::holds_alternative<Commit>(loop.body[end - 1].node)) ++end;
      const auto first = loop.body.begin() + static_cast<std::ptrdiff_t>(i),
                 last = loop.body.begin() + static_cast<std::ptrdiff_t>(end);
      const auto is_early = [&](const Stmt& s) {
        const StmtId op = operation_of(s);
        return op.valid() && copies_.count(op) > 0;
      };
      const auto moved = acquire ? std::stable_partition(first + 1, last, is_early) : first;
      if (acquire && moved != first + 1) {
        const int64_t slots = k_.pipelines[static_cast<size_t>(acquire->pipeline)].slots;
        early.iterations = early.body.empty() ? slots : std::min(early.iterations, slots);
        early.body.insert(early.body.end(), first, moved);
        rest.push_back({BehindPreamble{loop.loop, 0, Block(first, moved)}});
        rest.insert(rest.end(), moved, last);
      } else {
        rest.insert(rest.end(), first, last);
      }
      i = end;
    }
    if (early.body.empty()) return early;
    for (Stmt& s : rest)
      if (auto* behind = std::get_if<BehindPreamble>(&s.node)) behind->iterations = early.iterations;
    loop.body = std::move(rest);
    return early;
  }

  ScheduledKernel& k_;
  std::set<StmtId> copies_;
};

}  // namespace

void add_preamble(ScheduledKernel& k) { PreambleMaker(k).run(); }

}  // namespace tilegen::expand
