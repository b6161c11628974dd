// Loops of asynchronous copies become loads of the copy engine, where an arrival with copies of their warps
// stands behind them in their block.
#include <algorithm>

#include "lower/gpu/bulk_copies.h"
#include "thread/index_program.h"
#include "thread/transaction_verify.h"
#include "thread/warp_arrival.h"

namespace tilegen::lower {

namespace {

using thread::Block;
using thread::StmtId;

class BulkTaker {
 public:
  explicit BulkTaker(thread::ThreadProgram& p) : p_(p) {}

  std::string run() {
    for (const thread::BulkCopy& copy : p_.bulk_copies)
      if (!copy.refusal.empty()) return copy.refusal;
    Block body = p_.body;
    block(body);
    p_.body = std::move(body);
    return why_;
  }

 private:
  void block(Block& b) {
    std::vector<size_t> open;  // places of copies that no arrival came behind
    for (size_t i = 0; i < b.size() && why_.empty(); ++i) {
      if (copy_at(b[i])) {
        open.push_back(i);
      } else if (thread::TransactionArrive* arrival = arrival_at(b[i])) {
        if (open.empty()) return refuse("an arrival with copies has none in front of it in its block");
        arrival->copies = false;
        const thread::TransactionArrive at = *arrival;
        for (size_t place : open)
          if (!arrives_for(b[i], *copy_at(b[place])))
            return refuse("other warps arrive than those that copy");
        for (size_t place : open) b[place] = loaded(*copy_at(b[place]), at);
        open.clear();
      } else if (releases(b[i])) {
        const StmtId fence = p_.add(thread::ProxyFence{}, p_.stmts[b[i].value].origin);
        b.insert(b.begin() + static_cast<std::ptrdiff_t>(i++), fence);
      } else {
        inside(b[i]);
      }
    }
    if (!open.empty()) refuse("no arrival with copies stands behind it in its block");
  }

  // What threads have read before it the engine overwrites behind it: each fences its reads.
  bool releases(StmtId s) const {
    const thread::StmtNode& node = p_.stmts[s.value].node;
    const auto* one = std::get_if<thread::OneThread>(&node);
    return std::holds_alternative<thread::TransactionArrive>(node) ||
           std::holds_alternative<thread::Barrier>(node) || (one && thread::warp_arrival(p_, *one));
  }

  void inside(StmtId s) {
    const thread::StmtNode& node = p_.stmts[s.value].node;
    if (std::holds_alternative<thread::AsyncCopy>(node) ||
        std::holds_alternative<thread::AsyncCommit>(node) || std::holds_alternative<thread::AsyncWait>(node))
      return refuse("the kernel has copies in groups, too");
    std::vector<Block> blocks;
    for (const Block* inner : thread::blocks_inside(node)) blocks.push_back(*inner);
    for (Block& inner : blocks) block(inner);
    size_t next = 0;
    for (Block* inner : thread::blocks_inside(p_.stmts[s.value].node)) *inner = std::move(blocks[next++]);
  }

  const thread::BulkCopy* copy_at(StmtId s) const {
    const auto at = std::find_if(p_.bulk_copies.begin(), p_.bulk_copies.end(),
                                 [&](const thread::BulkCopy& c) { return c.loop == s; });
    return at == p_.bulk_copies.end() ? nullptr : &*at;
  }

  // One with copies, alone or in an if on the threads' numbers.
  thread::TransactionArrive* arrival_at(StmtId s) {
    if (const auto* branch = std::get_if<thread::Branch>(&p_.stmts[s.value].node))
      if (branch->then_body.size() == 1 && branch->else_body.empty()) s = branch->then_body.front();
    auto* arrival = std::get_if<thread::TransactionArrive>(&p_.stmts[s.value].node);
    return arrival && arrival->copies ? arrival : nullptr;
  }
  bool arrives_for(StmtId s, const thread::BulkCopy& copy) const {
    const auto* branch = std::get_if<thread::Branch>(&p_.stmts[s.value].node);
    if (!branch) return true;
    const thread::IndexProgram condition(p_.exprs, branch->condition);
    thread::PointValues at(p_.vars.size());
    for (int64_t t = copy.first; t < copy.first + copy.threads; ++t) {
      at.set(p_.thread_var, t);
      if (condition.eval(at).value_or(0) == 0) return false;
    }
    return true;
  }

  // One thread of the first warp that copies.
  StmtId loaded(const thread::BulkCopy& copy, const thread::TransactionArrive& arrival) {
    const std::string origin = p_.stmts[copy.loop.value].origin;
    thread::TensorLoad load = copy.load;
    load.map = map_of(copy.map);
    load.barriers = arrival.barriers;
    load.barrier_index = arrival.index;
    StmtId one = p_.add(thread::OneThread{{p_.add(std::move(load), origin)}}, origin);
    ir::ExprPool& e = p_.exprs;
    const int64_t end = copy.first + p_.machine.warp;
    const ir::ExprId thread = e.var(p_.thread_var), from = e.le(e.const_int(copy.first), thread);
    ir::ExprId first = end < p_.threads ? e.lt(thread, e.const_int(end)) : ir::ExprId();
    if (copy.first > 0) first = first ? e.logical_and(from, first) : from;
    return first ? p_.add(thread::Branch{first, {one}, {}}, origin) : one;
  }

  int map_of(thread::TensorMap map) {
    auto& maps = p_.tensor_maps;
    const auto known = std::find_if(maps.begin(), maps.end(), [&](const thread::TensorMap& m) {
      return m.tensor == map.tensor && m.box == map.box && m.swizzle == map.swizzle;
    });
    if (known != maps.end()) return static_cast<int>(known - maps.begin());
    if (!maps.empty()) map.name += std::to_string(maps.size());
    maps.push_back(std::move(map));
    return static_cast<int>(maps.size()) - 1;
  }

  void refuse(const char* why) {
    if (why_.empty()) why_ = why;
  }

  thread::ThreadProgram& p_;
  std::string why_;
};

}  // namespace

std::string take_bulk_copies(thread::ThreadProgram& p) {
  thread::ThreadProgram taken = p;
  std::string why = BulkTaker(taken).run();
  if (!why.empty()) return why;
  taken.bulk_copies.clear();
  std::vector<std::string> broken = thread::verify_thread_program(taken);
  if (broken.empty()) broken = thread::verify_transactions(taken);
  if (!broken.empty()) return broken.front();
  p = std::move(taken);
  return "";
}

}  // namespace tilegen::lower
