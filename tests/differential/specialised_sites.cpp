#include "specialised_sites.h"

#include <algorithm>
#include <map>
#include <set>

#include "lower/statement_exprs.h"
#include "target/target.h"

namespace tilegen::differential {

using ir::ExprId;
using thread::Block;
using thread::MemoryId;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

struct Place {
  Block* block = nullptr;
  size_t at = 0;
};

Place find(ThreadProgram& p, Block& block, StmtId id) {
  for (size_t i = 0; i < block.size(); ++i) {
    if (block[i] == id) return {&block, i};
    for (Block* inside : thread::blocks_inside(p.stmts[block[i].value].node))
      if (const Place found = find(p, *inside, id); found.block) return found;
  }
  return {};
}
Place find(ThreadProgram& p, StmtId id) { return find(p, p.body, id); }

void erase(Block& block, size_t at) { block.erase(block.begin() + static_cast<std::ptrdiff_t>(at)); }
void insert(Block& block, size_t at, StmtId id) {
  block.insert(block.begin() + static_cast<std::ptrdiff_t>(at), id);
}

// "attention/kb:Ks.full" -> "attention/kb:Ks"
std::string channel_of(const ThreadProgram& p, int barriers) {
  const std::string& name = p.barriers[static_cast<size_t>(barriers)].name;
  return name.substr(0, name.rfind('.'));
}
bool is_full(const ThreadProgram& p, int barriers) {
  return p.barriers[static_cast<size_t>(barriers)].name.ends_with(".full");
}

// Memories that some statement reads or writes through expressions, or hands to an engine.
std::set<MemoryId> touched(ThreadProgram& p, const Block& block) {
  std::set<MemoryId> all;
  std::function<void(ExprId)> loads = [&](ExprId e) {
    if (!e) return;
    const ir::ExprNode n = p.exprs[e];
    for (ExprId operand : {n.a, n.b, n.c}) loads(operand);
    if (n.op != ir::ExprOp::load) return;
    all.insert(n.object);
    for (ExprId index : p.exprs.indices(e)) loads(index);
  };
  lower::for_each_expr_below(p, block, [&](ExprId& e) { loads(e); });
  std::function<void(const Block&)> walk = [&](const Block& b) {
    for (StmtId id : b) {
      const thread::StmtNode& node = p.stmts[id.value].node;
      if (const auto* s = std::get_if<thread::Store>(&node)) all.insert(s->memory);
      if (const auto* l = std::get_if<thread::TensorLoad>(&node)) all.insert(l->dst);
      if (const auto* s = std::get_if<thread::TensorStore>(&node)) all.insert(s->src);
      if (const auto* s = std::get_if<thread::StoreMatrix>(&node)) all.insert({s->dst, s->src});
      if (const auto* l = std::get_if<thread::ClusterLoad>(&node)) all.insert({l->dst, l->src});
      if (const auto* m = std::get_if<thread::WarpgroupMma>(&node)) all.insert({m->a, m->b, m->c});
      for (const Block* inside : thread::blocks_inside(node)) walk(*inside);
    }
  };
  walk(block);
  return all;
}

class Sites {
 public:
  explicit Sites(ThreadProgram p) : p_(std::move(p)) {}

  std::vector<SpecialisedDefect> list() {
    for (size_t b = 0; b < p_.barriers.size(); ++b)
      for (int64_t by : {1, -1})
        if (p_.barriers[b].arrivals + by > 0)
          add(by > 0 ? "an arrival more counted" : "an arrival fewer counted", p_.barriers[b].name,
              [b, by](ThreadProgram& p) { p.barriers[b].arrivals += by; });
    walk(p_.body);
    return std::move(list_);
  }

 private:
  void add(const std::string& kind, const std::string& where, std::function<void(ThreadProgram&)> spoil) {
    const int number = ++of_place_[{kind, where}];
    list_.push_back({kind, number == 1 ? where : where + " #" + std::to_string(number), std::move(spoil)});
  }
  template <class Node>
  void change(const std::string& kind, StmtId id, std::function<void(ThreadProgram&, Node&)> f) {
    add(kind, where_, [id, f](ThreadProgram& p) { f(p, std::get<Node>(p.stmts[id.value].node)); });
  }
  void remove(const std::string& kind, StmtId id) {
    add(kind, where_, [id](ThreadProgram& p) {
      const Place at = find(p, id);
      erase(*at.block, at.at);
    });
  }

  void walk(const Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      const thread::Stmt& s = p_.stmts[block[i].value];
      where_ = s.origin;
      std::visit([&](const auto& node) { of(node, block, i); }, s.node);
      for (const Block* inside : thread::blocks_inside(s.node)) walk(*inside);
    }
  }

  template <class Node>
  void of(const Node&, const Block&, size_t) {}

  // After the next statement of the block that uses one of these.
  void later(const std::string& kind, const Block& block, size_t i, const std::set<MemoryId>& uses) {
    for (size_t j = i + 1; j < block.size(); ++j) {
      const std::set<MemoryId> there = touched(p_, {block[j]});
      if (std::none_of(uses.begin(), uses.end(), [&](MemoryId m) { return there.contains(m); })) continue;
      const StmtId id = block[i], use = block[j];
      add(kind, where_, [id, use](ThreadProgram& p) {
        const Place from = find(p, id);
        erase(*from.block, from.at);
        const Place to = find(p, use);
        insert(*to.block, to.at + 1, id);
      });
      return;
    }
  }
  static ExprId next_of(ThreadProgram& p, ExprId index, int64_t by, int64_t count) {
    return p.exprs.floormod(p.exprs.add(index, p.exprs.const_int(by)), p.exprs.const_int(count));
  }
  bool in_slots(MemoryId m) const {
    return p_.memory(m).space == thread::Space::shared && p_.memory(m).slots > 1;
  }
  static ExprId next_slot(ThreadProgram& p, MemoryId m, ExprId index) {
    const thread::Memory& tile = p.memory(m);
    return next_of(p, index, tile.elements / tile.slots, tile.elements);
  }
  int64_t count(int barriers) const { return p_.barriers[static_cast<size_t>(barriers)].count; }

  void of(const thread::TransactionWait& w, const Block& block, size_t i) {
    using Wait = thread::TransactionWait;
    where_ += ", wait for " + p_.barriers[static_cast<size_t>(w.barriers)].name;
    change<Wait>("phase flipped", block[i],
                 [](ThreadProgram& p, Wait& x) { x.parity = p.exprs.sub(p.exprs.const_int(1), x.parity); });
    remove("wait for a phase removed", block[i]);
    if (const int64_t n = count(w.barriers); n > 1)
      change<Wait>("wait for another slot", block[i],
                   [n](ThreadProgram& p, Wait& x) { x.index = next_of(p, x.index, 1, n); });
    later("wait for a phase after the use", block, i, tiles_of(w.barriers));
  }

  void of(const thread::TransactionArrive& a, const Block& block, size_t i) {
    using Arrive = thread::TransactionArrive;
    where_ += ", arrival at " + p_.barriers[static_cast<size_t>(a.barriers)].name;
    remove("arrival removed", block[i]);
    if (const int64_t n = count(a.barriers); n > 1)
      change<Arrive>("arrival for another slot", block[i],
                     [n](ThreadProgram& p, Arrive& x) { x.index = next_of(p, x.index, 1, n); });
    for (int64_t by : {16, -16})
      if (a.bytes > 0)
        change<Arrive>(by > 0 ? "more bytes expected" : "fewer bytes expected", block[i],
                       [by](ThreadProgram&, Arrive& x) { x.bytes += by; });
  }

  // A branch or a thread's task that only gives something back: before what it waited behind, and by too
  // many.
  bool only_arrives(const Block& body) const {
    return body.size() == 1 &&
           std::holds_alternative<thread::TransactionArrive>(p_.stmts[body[0].value].node);
  }
  void of(const thread::Branch& b, const Block& block, size_t i) {
    if (!b.else_body.empty() || !only_arrives(b.then_body)) return;
    const auto& arrive = std::get<thread::TransactionArrive>(p_.stmts[b.then_body[0].value].node);
    where_ += ", arrival at " + p_.barriers[static_cast<size_t>(arrive.barriers)].name;
    change<thread::Branch>("arrival of all threads", block[i], [](ThreadProgram& p, thread::Branch& x) {
      x.condition = p.exprs.const_int(1, ir::DType::boolean);
    });
    if (is_full(p_, arrive.barriers)) return;
    const std::set<MemoryId> tiles = tiles_of(arrive.barriers);
    bool waited = false, used = false;
    for (size_t j = i; j-- > 0 && !(waited && used);) {
      if (!waited && (holds<thread::WarpgroupWait>(block[j]) || holds<thread::Barrier>(block[j]))) {
        waited = true;
        earlier("release before the wait", block[i], block[j]);
      }
      const std::set<MemoryId> there = touched(p_, {block[j]});
      if (!used && std::any_of(tiles.begin(), tiles.end(), [&](MemoryId m) { return there.contains(m); })) {
        used = true;
        earlier("release before the use", block[i], block[j]);
      }
    }
  }
  void earlier(const std::string& kind, StmtId id, StmtId than) {
    add(kind, where_, [id, than](ThreadProgram& p) {
      const Place from = find(p, id);
      erase(*from.block, from.at);
      const Place to = find(p, than);
      insert(*to.block, to.at, id);
    });
  }
  // That the barriers hand over.
  std::set<MemoryId> tiles_of(int barriers) const {
    std::set<MemoryId> tiles;
    for (const thread::Stmt& s : p_.stmts)
      if (const auto* load = std::get_if<thread::TensorLoad>(&s.node);
          load && channel_of(p_, load->barriers) == channel_of(p_, barriers))
        tiles.insert(load->dst);
    for (size_t m = 0; m < p_.memories.size(); ++m)
      if (p_.memories[m].name == channel_of(p_, barriers)) tiles.insert(MemoryId(m));
    return tiles;
  }
  template <class Node>
  bool holds(StmtId id) const {
    const thread::StmtNode& node = p_.stmts[id.value].node;
    if (std::holds_alternative<Node>(node)) return true;
    for (const Block* inside : thread::blocks_inside(node))
      for (StmtId s : *inside)
        if (holds<Node>(s)) return true;
    return false;
  }

  void of(const thread::OneThread& o, const Block& block, size_t i) {
    if (o.body.empty()) return;
    const StmtId id = block[i];
    add("by every lane", where_, [id](ThreadProgram& p) {
      const Block body = std::get<thread::OneThread>(p.stmts[id.value].node).body;
      const Place at = find(p, id);
      erase(*at.block, at.at);
      at.block->insert(at.block->begin() + static_cast<std::ptrdiff_t>(at.at), body.begin(), body.end());
    });
  }

  void of(const thread::WarpgroupFence&, const Block& block, size_t i) {
    remove("warpgroup fence removed", block[i]);
  }
  void of(const thread::ProxyFence&, const Block& block, size_t i) {
    remove("proxy fence removed", block[i]);
  }
  void of(const thread::WarpgroupCommit&, const Block& block, size_t i) {
    remove("commit of products removed", block[i]);
  }
  void of(const thread::BulkCommit&, const Block& block, size_t i) {
    remove("commit of a store removed", block[i]);
  }
  void of(const thread::FetchTile&, const Block& block, size_t i) { remove("fetch_tile removed", block[i]); }
  void of(const thread::BulkWait&, const Block& block, size_t i) {
    remove("wait for the store removed", block[i]);
    change<thread::BulkWait>("wait for the store weakened", block[i],
                             [](ThreadProgram&, thread::BulkWait& w) { ++w.pending; });
  }
  void of(const thread::WarpgroupWait& w, const Block& block, size_t i) {
    using Wait = thread::WarpgroupWait;
    change<Wait>("wait for products weakened", block[i], [](ThreadProgram&, Wait& x) { ++x.pending; });
    later("wait for products after the use", block, i, {w.registers.begin(), w.registers.end()});
    const std::string here = where_;
    for (size_t r = 0; r < w.registers.size(); ++r) {
      where_ = here + ", " + p_.memory(w.registers[r]).name;
      change<Wait>("wait for products without its registers", block[i], [r](ThreadProgram&, Wait& x) {
        x.registers.erase(x.registers.begin() + static_cast<std::ptrdiff_t>(r));
      });
    }
  }
  void of(const thread::Barrier& b, const Block& block, size_t i) {
    using Meet = thread::Barrier;
    where_ += (b.arrive_only ? ", arrival at barrier " : ", barrier ") + std::to_string(b.id);
    remove("named barrier removed", block[i]);
    for (int64_t by : {128, -128})
      if (b.threads + by > 0)
        change<Meet>("named barrier of other threads", block[i],
                     [by](ThreadProgram&, Meet& x) { x.threads += by; });
    // One that is in use: an id of its own is as good as another.
    std::set<int> used;
    for (const thread::Stmt& s : p_.stmts)
      if (const auto* other = std::get_if<Meet>(&s.node)) used.insert(other->id);
    auto other = used.upper_bound(b.id);
    if (other == used.end()) other = used.begin();
    if (const int id = *other; id != b.id)
      change<Meet>("another named barrier", block[i], [id](ThreadProgram&, Meet& x) { x.id = id; });
  }

  void of(const thread::TensorLoad& l, const Block& block, size_t i) {
    using Load = thread::TensorLoad;
    where_ += ", to " + p_.memory(l.dst).name;
    remove("copy removed", block[i]);
    if (in_slots(l.dst))
      change<Load>("copy to another slot", block[i],
                   [](ThreadProgram& p, Load& x) { x.dst_index = next_slot(p, x.dst, x.dst_index); });
    if (const int64_t n = count(l.barriers); n > 1)
      change<Load>("copy reported for another slot", block[i],
                   [n](ThreadProgram& p, Load& x) { x.barrier_index = next_of(p, x.barrier_index, 1, n); });
  }
  void of(const thread::TensorStore& s, const Block& block, size_t i) {
    int64_t box = 1;
    for (int64_t extent : p_.tensor_maps[static_cast<size_t>(s.map)].box) box *= extent;
    if (p_.memory(s.src).elements <= box) return;
    change<thread::TensorStore>("store from another stage", block[i],
                                [box](ThreadProgram& p, thread::TensorStore& x) {
                                  x.src_index = next_of(p, x.src_index, box, p.memory(x.src).elements);
                                });
  }
  void of(const thread::WarpgroupMma& m, const Block& block, size_t i) {
    using Mma = thread::WarpgroupMma;
    where_ += ", with " + p_.memory(m.b).name;
    if (in_slots(m.a))
      change<Mma>("A of another slot", block[i],
                  [](ThreadProgram& p, Mma& x) { x.a_index = next_slot(p, x.a, x.a_index); });
    if (in_slots(m.b))
      change<Mma>("B of another slot", block[i],
                  [](ThreadProgram& p, Mma& x) { x.b_index = next_slot(p, x.b, x.b_index); });
    const auto strides = [&](const char* kind, thread::MatrixForm Mma::*form,
                             int64_t thread::MatrixForm::*stride) {
      if ((m.*form).*stride == 0) return;
      change<Mma>(std::string(kind) + " doubled", block[i],
                  [=](ThreadProgram&, Mma& x) { (x.*form).*stride *= 2; });
      change<Mma>(std::string(kind) + " halved", block[i],
                  [=](ThreadProgram&, Mma& x) { (x.*form).*stride /= 2; });
    };
    if (p_.memory(m.a).space == thread::Space::shared)
      strides("stride of A", &Mma::a_form, &thread::MatrixForm::stride_bytes);
    strides("stride of B", &Mma::b_form, &thread::MatrixForm::stride_bytes);
    // Rows of n beyond one are reached by it.
    const auto atom = target::find_warpgroup_atom(*target::find_target("sm_90a"), m.atom);
    if (atom && !m.b_form.k_major && atom->n * ir::dtype_bytes(p_.memory(m.b).type) > m.b_form.swizzle)
      strides("leading distance of B", &Mma::b_form, &thread::MatrixForm::leading_bytes);
  }

  ThreadProgram p_;
  std::string where_;
  std::map<std::pair<std::string, std::string>, int> of_place_;
  std::vector<SpecialisedDefect> list_;
};

}  // namespace

std::vector<SpecialisedDefect> specialised_defects(const ThreadProgram& p) { return Sites(p).list(); }

}  // namespace tilegen::differential
