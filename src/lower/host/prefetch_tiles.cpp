#include "lower/host/prefetch_tiles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

using ir::ExprId;
using ir::VarId;
using thread::StmtId;
using thread::ThreadProgram;

constexpr int64_t kLineBytes = 64;
// Multiply-adds of vectors for each prefetch: below, the core has no room for them beside the product.
constexpr int64_t kWorkPerPrefetch = 8;
// Prefetches between two products: more wait for each other, and the product for them.
constexpr int64_t kMostTogether = 16;

struct Digit {
  VarId var;
  int64_t extent = 1;
};

// Of a load in a copy's nest: every line that it reads is named by the digits, outermost first, and by the
// line within a run of neighbouring elements.
struct Lines {
  StmtId origin;
  ExprId load;
  std::vector<Digit> digits;
  std::vector<VarId> run;  // loops over the run's elements
  int64_t per_run = 1;
  int64_t elements_apart = 1;

  int64_t count() const {
    int64_t n = per_run;
    for (const Digit& d : digits) n *= d.extent;
    return n;
  }
};

struct Product {
  std::vector<StmtId> loops;  // outermost first
  std::vector<Digit> digits;
  int64_t tiles = 1;  // register tiles
  int64_t work = 0;   // multiply-adds of vectors in one of them
};

template <class Node>
const Node* as(const ThreadProgram& p, StmtId id) {
  return std::get_if<Node>(&p.stmts[id.value].node);
}

std::optional<Product> product_of(const ThreadProgram& p, StmtId id) {
  constexpr int kLanes = 16;
  Product product;
  while (const auto* loop = as<thread::Loop>(p, id)) {
    int64_t extent = 0;
    if (loop->body.size() != 1 || loop->condition || !p.exprs.is_const_int(loop->extent, &extent))
      return std::nullopt;
    product.loops.push_back(id);
    product.digits.push_back({loop->var, extent});
    product.tiles *= extent;
    id = loop->body[0];
  }
  const auto* mma = as<thread::HostMma>(p, id);
  if (!mma || product.loops.empty() || product.tiles == 0) return std::nullopt;
  product.work = static_cast<int64_t>(mma->mr) * mma->nr * (mma->k / mma->step()) / kLanes;
  return product;
}

// The load of a store that only copies.
ExprId copied(const ThreadProgram& p, ExprId value) {
  while (value && p.exprs[value].op == ir::ExprOp::cast) value = p.exprs[value].a;
  if (!value || p.exprs[value].op != ir::ExprOp::load) return {};
  const ir::ExprNode& n = p.exprs[value];
  const bool plain = n.index_count == 1 && p.memory(n.object).space == thread::Space::global;
  return plain ? value : ExprId();
}

class TilePrefetcher {
 public:
  TilePrefetcher(ThreadProgram& p, int64_t l2_bytes) : p_(p), l2_bytes_(l2_bytes) {}

  void block(const thread::Block& body) {
    for (StmtId s : body)
      if (const auto* loop = as<thread::Loop>(p_, s); loop && loop->form == thread::LoopForm::serial) {
        const thread::Block inside = loop->body;
        block(inside);
        iterate(s, inside);
      }
  }

 private:
  void lines_of(StmtId s, std::vector<Lines>& out) const {
    if (const auto* branch = as<thread::Branch>(p_, s)) {
      for (StmtId inner : branch->then_body) lines_of(inner, out);
      return;
    }
    const auto nest = thread::perfect_nest(p_, s);
    if (!nest) return;
    for (StmtId stored : nest->stores)
      if (const ExprId load = copied(p_, as<thread::Store>(p_, stored)->value); load)
        if (auto lines = lines_of(s, *nest, load)) out.push_back(std::move(*lines));
  }

  std::optional<Lines> lines_of(StmtId s, const thread::PerfectNest& nest, ExprId load) const {
    if (ir::dtype_bits(p_.memory(p_.exprs[load].object).type) < 8) return std::nullopt;
    const ExprId index = p_.exprs.indices(load)[0];
    const int64_t bytes = ir::dtype_bytes(p_.memory(p_.exprs[load].object).type);
    Lines lines{s, load, {}, {}, 1, kLineBytes / bytes};
    int64_t run = 1;
    for (size_t l = nest.loops.size(); l-- > 0;) {
      const auto& loop = *as<thread::Loop>(p_, nest.loops[l]);
      int64_t extent = 0;
      if (!p_.exprs.is_const_int(loop.extent, &extent)) return std::nullopt;
      if (lines.digits.empty() && thread::coefficient_of(p_, loop.var, index) == run) {
        lines.run.push_back(loop.var);
        run *= extent;
      } else {
        lines.digits.insert(lines.digits.begin(), {loop.var, extent});
      }
    }
    if (run * bytes < kLineBytes || lines.count() == 0) return std::nullopt;
    lines.per_run = (run * bytes + kLineBytes - 1) / kLineBytes;
    return lines;
  }

  // What variables are in the iteration after this one: of the loop, or the first of the next block. Where
  // the extent reads memory the loop is taken to go on: its end is not looked up for each prefetch.
  std::map<VarId, ExprId> next_iteration(const thread::Loop& loop) {
    ir::ExprPool& e = p_.exprs;
    const ExprId next = e.add(e.var(loop.var), int64_t{1}), zero = e.const_int(0);
    if (thread::reads_memory(p_, loop.extent)) return {{loop.var, next}};
    const ExprId goes_on = e.lt(next, loop.extent);
    std::map<VarId, ExprId> map = {{loop.var, e.select(goes_on, next, zero)}};
    ExprId carry = e.select(goes_on, zero, e.const_int(1));
    for (size_t d = p_.block_vars.size(); d-- > 0;) {
      const ExprId moved = e.add(e.var(p_.block_vars[d]), carry);
      const ExprId inside = e.lt(moved, p_.grid[d]);
      map[p_.block_vars[d]] = d == 0 ? moved : e.select(inside, moved, zero);
      carry = e.select(inside, zero, e.const_int(1));
    }
    return map;
  }

  void iterate(StmtId s, const thread::Block& body) {
    std::vector<Lines> lines;
    std::optional<Product> product;
    for (StmtId inner : body) {
      lines_of(inner, lines);
      if (auto found = product_of(p_, inner);
          found && (!product || found->tiles * found->work > product->tiles * product->work))
        product = std::move(found);
    }
    if (!product || lines.empty()) return;
    const thread::Loop loop = *as<thread::Loop>(p_, s);
    const std::map<VarId, ExprId> next = next_iteration(loop);
    std::erase_if(lines, [&](const Lines& l) {
      const ExprId index = p_.exprs.indices(l.load)[0];
      std::map<VarId, ExprId> moved = {{loop.var, p_.exprs.add(p_.exprs.var(loop.var), int64_t{1})}};
      return thread::VarSubstitution(p_.exprs, moved)(index) == index || thread::reads_memory(p_, index);
    });
    int64_t count = 0;
    for (const Lines& l : lines) count += l.count();
    if (l2_bytes_ > 0 && count * kLineBytes > l2_bytes_ / 2) return;
    if (count * kWorkPerPrefetch > product->tiles * product->work) return;
    split(*product, count);
    thread::Block added;
    for (const Lines& l : lines) added.push_back(prefetches(l, *product, next));
    auto& inner = std::get<thread::Loop>(p_.stmts[product->loops.back().value].node);
    inner.body.insert(inner.body.begin(), added.begin(), added.end());
  }

  // Cuts the product's k into pieces, a loop inside of those over register tiles, until the prefetches in
  // front of each are few. A piece takes C from the nearest cache again.
  void split(Product& product, int64_t lines) {
    const StmtId at = std::get<thread::Loop>(p_.stmts[product.loops.back().value].node).body[0];
    thread::HostMma mma = *as<thread::HostMma>(p_, at);
    const int64_t steps = mma.k / mma.step();
    int64_t pieces = 1;
    while (lines > pieces * product.tiles * kMostTogether && steps % (2 * pieces) == 0) pieces *= 2;
    // Matrix registers take as long for C as for a few steps of k.
    if (pieces == 1 || mma.clear || mma.tile.k > 0) return;
    ir::ExprPool& e = p_.exprs;
    const VarId var = p_.add_var("piece" + std::to_string(p_.vars.size()), ir::VarKind::loop);
    mma.k /= pieces;
    mma.a_index = e.add(mma.a_index, e.mul(e.var(var), steps / pieces * mma.a_k));
    mma.b_index = e.add(mma.b_index, e.mul(e.var(var), mma.k / mma.pack * mma.b_k));
    const std::string origin = p_.stmts[at.value].origin;
    const StmtId piece = p_.add(mma, origin);
    const StmtId loop =
        p_.add(thread::Loop{var, e.const_int(pieces), thread::LoopForm::serial, {piece}}, origin);
    std::get<thread::Loop>(p_.stmts[product.loops.back().value].node).body = {loop};
    product.loops.push_back(loop);
    product.digits.push_back({var, pieces});
    product.tiles *= pieces;
  }

  // The share of one register tile, as a loop.
  StmtId prefetches(const Lines& lines, const Product& product, std::map<VarId, ExprId> at) {
    ir::ExprPool& e = p_.exprs;
    ExprId tile = e.const_int(0);
    for (const Digit& d : product.digits) tile = e.add(e.mul(tile, d.extent), e.var(d.var));
    const int64_t share = (lines.count() + product.tiles - 1) / product.tiles;
    const VarId var = p_.add_var("line" + std::to_string(p_.vars.size()), ir::VarKind::loop);
    ExprId rest = e.add(e.mul(tile, share), e.var(var));
    const ExprId in_run = e.binary(ir::ExprOp::floormod, rest, e.const_int(lines.per_run));
    rest = e.binary(ir::ExprOp::floordiv, rest, e.const_int(lines.per_run));
    for (size_t d = lines.digits.size(); d-- > 0;) {
      const Digit& digit = lines.digits[d];
      at[digit.var] = d == 0 ? rest : e.binary(ir::ExprOp::floormod, rest, e.const_int(digit.extent));
      rest = e.binary(ir::ExprOp::floordiv, rest, e.const_int(digit.extent));
    }
    for (VarId v : lines.run) at[v] = e.const_int(0);
    thread::VarSubstitution there(e, std::move(at));
    const ExprId index = e.add(there(e.indices(lines.load)[0]), e.mul(in_run, lines.elements_apart));
    const std::string origin = p_.stmts[lines.origin.value].origin;
    const StmtId one = p_.add(thread::Prefetch{p_.exprs[lines.load].object, index, 2}, origin);
    return p_.add(thread::Loop{var, e.const_int(share), thread::LoopForm::unrolled, {one}}, origin);
  }

  ThreadProgram& p_;
  int64_t l2_bytes_;
};

}  // namespace

void prefetch_tiles(ThreadProgram& p, int64_t l2_bytes) {
  if (p.block_vars.empty() || p.threads != 1) return;
  TilePrefetcher(p, l2_bytes).block(thread::Block(p.body));
}

}  // namespace tilegen::lower
