// Scheduled programs with one fault: a statement that orders roles or engines is left out, doubled or moved.
#pragma once

#include <cstdio>
#include <functional>
#include <set>

#include "expand/versions.h"
#include "scheduled_support.h"

namespace tilegen::expand {

// Outer ones before what is in them. What lists of warpgroups come to is not what runs.
inline std::vector<Block*> blocks_of(Block& body) {
  std::vector<Block*> list;
  std::set<Block*> not_run;
  for_each_block(body, [&](Block& b) {
    for (Stmt& s : b)
      if (auto* lists = std::get_if<PerWarpgroup>(&s.node)) {
        not_run.insert(&lists->body);
        for_each_block(lists->body, [&](Block& inside) { not_run.insert(&inside); });
      }
    list.push_back(&b);
  });
  std::erase_if(list, [&](Block* b) { return not_run.count(b) > 0; });
  std::reverse(list.begin(), list.end());
  return list;
}

inline bool has_versions(const Block& body) {
  bool found = false;
  for_each_block(body, [&](const Block& b) {
    for (const Stmt& s : b) found = found || std::holds_alternative<Version>(s.node);
  });
  return found;
}

// Statements that order roles and engines.
inline bool orders(const Stmt& s) {
  return std::visit(
      [](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        return std::is_same_v<Node, Acquire> || std::is_same_v<Node, Commit> || std::is_same_v<Node, Wait> ||
               std::is_same_v<Node, Release> || std::is_same_v<Node, Await> ||
               std::is_same_v<Node, CommitGroup> || std::is_same_v<Node, WaitGroup>;
      },
      s.node);
}

struct Counts {
  int mutants = 0, told = 0;
};

// `change` at every statement that orders something, where it can be made; `told` judges what comes of it.
inline Counts mutate(Expanded& e, const std::function<bool(Block&, size_t)>& change,
                     const std::function<bool()>& told) {
  Counts counts;
  for (Role& role : e.kernel.roles) {
    std::vector<Block*> blocks = blocks_of(role.body);
    for (size_t b = 0; b < blocks.size(); ++b)
      for (size_t i = 0; i < blocks[b]->size(); ++i) {
        if (!orders((*blocks[b])[i])) continue;
        const Block before = role.body;
        if (change(*blocks[b], i)) {
          ++counts.mutants;
          const bool is_told = told();
          counts.told += is_told;
          if (!is_told) std::printf("survives: statement %zu of block %zu, %s\n", i, b, role.name.c_str());
        }
        role.body = before;
        blocks = blocks_of(role.body);
      }
  }
  return counts;
}

inline bool leave_out(Block& b, size_t i) {
  b.erase(b.begin() + static_cast<ptrdiff_t>(i));
  return true;
}

inline bool double_it(Block& b, size_t i) {
  if (std::holds_alternative<Await>(b[i].node) || std::holds_alternative<WaitGroup>(b[i].node) ||
      std::holds_alternative<CommitGroup>(b[i].node))
    return false;  // no harm
  b.insert(b.begin() + static_cast<ptrdiff_t>(i), Stmt(b[i]));
  return true;
}

// A wait after what it is for.
inline bool wait_later(Block& b, size_t i) {
  const At* next = i + 1 < b.size() ? std::get_if<At>(&b[i + 1].node) : nullptr;
  if (!next || (std::holds_alternative<WaitGroup>(b[i].node) && next->where_exists)) return false;
  if (!std::holds_alternative<Wait>(b[i].node) && !std::holds_alternative<WaitGroup>(b[i].node)) return false;
  std::swap(b[i], b[i + 1]);
  return true;
}

// A wait that leaves one more running.
inline bool one_more_pending(Block& b, size_t i) {
  if (auto* await = std::get_if<Await>(&b[i].node)) return ++await->pending > 0;
  if (auto* wait = std::get_if<WaitGroup>(&b[i].node)) return ++wait->pending > 0;
  return false;
}

// A slot that is given back before the products that read it are awaited.
inline bool release_earlier(Block& b, size_t i) {
  if (i == 0 || !std::holds_alternative<Release>(b[i].node) || !std::holds_alternative<Await>(b[i - 1].node))
    return false;
  std::swap(b[i], b[i - 1]);
  return true;
}

// The iteration behind, or before, the one that is meant.
inline std::function<bool(Block&, size_t)> another_iteration(const Expanded& e, int64_t by) {
  return [&e, by](Block& b, size_t i) {
    return std::visit(
        [&](auto& node) {
          if constexpr (requires { node.at.plus; }) {
            node.at.plus += by;
            return e.kernel.pipelines[static_cast<size_t>(node.pipeline)].loop.valid();
          }
          return false;
        },
        b[i].node);
  };
}

}  // namespace tilegen::expand
