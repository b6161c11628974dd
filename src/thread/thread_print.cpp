#include "thread/thread_expr_text.h"
#include "thread/thread_print_head.h"
#include "thread/thread_program.h"

namespace tilegen::thread {
namespace {

constexpr int kMaxNesting = 256;

const char* form_name(LoopForm f) {
  switch (f) {
    case LoopForm::serial:
      return "serial";
    case LoopForm::unrolled:
      return "unrolled";
    case LoopForm::vectorized:
      return "vectorized";
  }
  return "unknown";
}

const char* combine_name(Combine c) {
  switch (c) {
    case Combine::sum:
      return "sum";
    case Combine::max:
      return "max";
    case Combine::min:
      return "min";
    case Combine::product:
      return "product";
    case Combine::bit_and:
      return "and";
    case Combine::bit_or:
      return "or";
    case Combine::bit_xor:
      return "xor";
  }
  return "unknown";
}

class Printer {
 public:
  explicit Printer(const ThreadProgram& p) : p_(p) {}

  std::string print() {
    out_ = head_text(p_);
    out_ += "body\n";
    print_block(p_.body, 1);
    return std::move(out_);
  }

 private:
  void line(int indent, const std::string& text, const std::string& origin = {}) {
    out_ += std::string(2 * static_cast<size_t>(indent), ' ') + text;
    if (!origin.empty()) out_ += "  ; " + origin;
    out_ += "\n";
  }

  std::string at(MemoryId memory, ir::ExprId index) const {
    return memory_text(p_, memory) + "[" + expr_text(p_, index) + "]";
  }

  void print_block(const Block& block, int indent) {
    if (indent > kMaxNesting) return line(indent, "...");
    for (StmtId id : block) {
      if (id.value >= p_.stmts.size()) {
        line(indent, "?");
        continue;
      }
      const Stmt& stmt = p_.stmts[id.value];
      std::visit([&](const auto& node) { print(node, indent, stmt.origin); }, stmt.node);
    }
  }

  void print(const Loop& loop, int indent, const std::string& origin) {
    line(indent,
         std::string(loop.rolled ? "rolled" : form_name(loop.form)) + " " + var_text(p_, loop.var) +
             " in 0.." + expr_text(p_, loop.extent) +
             (loop.condition.valid() ? " while " + expr_text(p_, loop.condition) : "") + " {",
         origin);
    print_block(loop.body, indent + 1);
    line(indent, "}");
  }

  void print(const Branch& branch, int indent, const std::string& origin) {
    line(indent, (branch.together ? "if in some lane " : "if ") + expr_text(p_, branch.condition) + " {",
         origin);
    print_block(branch.then_body, indent + 1);
    if (!branch.else_body.empty()) {
      line(indent, "} else {");
      print_block(branch.else_body, indent + 1);
    }
    line(indent, "}");
  }

  void print(const Store& store, int indent, const std::string& origin) {
    std::string text = store.atomic ? std::string(ir::atomic_text(*store.atomic)) + " " +
                                          at(store.memory, store.index) + ", " + expr_text(p_, store.value)
                                    : at(store.memory, store.index) + " = " + expr_text(p_, store.value);
    if (store.order != ir::AtomicOrder::relaxed) text += " " + std::string(ir::order_text(store.order));
    if (store.expected.valid()) text += " expected " + expr_text(p_, store.expected);
    if (store.old.valid()) text = at(store.old, store.old_index) + " = old of " + text;
    if (store.predicate.valid()) text += " if " + expr_text(p_, store.predicate);
    if (store.streaming) text += " streaming";
    if (store.streaming && store.streaming_if.valid()) text += " if " + expr_text(p_, store.streaming_if);
    line(indent, text, origin);
  }

  void print(const LaneReduce& r, int indent, const std::string& origin) {
    line(indent,
         at(r.dst, r.dst_index) + " = " + combine_name(r.combine) + " of " + std::to_string(r.width) +
             " lanes from " + at(r.src, r.src_index) + (r.accumulate ? " accumulate" : ""),
         origin);
  }

  void print(const HostMma& m, int indent, const std::string& origin) {
    const auto number = [](int64_t v) { return std::to_string(v); };
    line(indent,
         "mma " + number(m.mr) + "x" + number(m.nr) + "x" + number(m.k) + " pack " + number(m.pack) + " " +
             (m.tile.k == 0 ? ""
                            : "tiles " + number(m.tile.rows) + "x" + number(m.tile.columns) + "x" +
                                  number(m.tile.k) + " ") +
             at(m.c, m.c_index) + " row " + number(m.c_row) + (m.clear ? " = " : " += ") +
             at(m.a, m.a_index) + " row " + number(m.a_row) + " k " + number(m.a_k) + " * " +
             at(m.b, m.b_index) + " k " + number(m.b_k),
         origin);
  }

  void print(const Prefetch& prefetch, int indent, const std::string& origin) {
    line(indent,
         "prefetch " + at(prefetch.memory, prefetch.index) + " locality " + std::to_string(prefetch.locality),
         origin);
  }

  void print(const Barrier& barrier, int indent, const std::string& origin) {
    std::string text = barrier.arrive_only ? "arrive" : "barrier";
    if (barrier.id != 0 || barrier.threads != 0)
      text += " " + std::to_string(barrier.id) + " threads " + std::to_string(barrier.threads);
    line(indent, text, origin);
  }

  void print(const AsyncCopy& copy, int indent, const std::string& origin) {
    std::string text = "async_copy " + std::to_string(copy.bytes) + " bytes " + at(copy.dst, copy.dst_index) +
                       " = " + at(copy.src, copy.src_index);
    if (copy.predicate.valid()) text += " if " + expr_text(p_, copy.predicate) + " else 0";
    line(indent, text, origin);
  }

  void print(const AsyncCommit&, int indent, const std::string& origin) {
    line(indent, "async_commit", origin);
  }

  void print(const AsyncWait& wait, int indent, const std::string& origin) {
    line(indent, "async_wait pending " + std::to_string(wait.pending), origin);
  }

  void print(const Shuffle& shuffle, int indent, const std::string& origin) {
    const bool butterfly = shuffle.mode == Shuffle::Mode::butterfly;
    line(indent,
         at(shuffle.dst, shuffle.dst_index) + " = shuffle " + (butterfly ? "lane ^ " : "lane ") +
             expr_text(p_, shuffle.lane) + " of " + expr_text(p_, shuffle.value),
         origin);
  }

  void print(const Vote& vote, int indent, const std::string& origin) {
    line(indent,
         at(vote.dst, vote.dst_index) + " = " + vote_name(vote.mode) + " of " + std::to_string(vote.lanes) +
             " lanes: " + expr_text(p_, vote.value),
         origin);
  }

  void print(const LoadMatrix& load, int indent, const std::string& origin) {
    line(indent,
         at(load.dst, load.dst_index) + " = load_matrix x" + std::to_string(load.matrices) +
             (load.transpose ? " transposed " : " ") + at(load.src, load.src_index),
         origin);
  }

  void print(const StoreMatrix& store, int indent, const std::string& origin) {
    line(indent,
         "store_matrix x" + std::to_string(store.matrices) + (store.transpose ? " transposed " : " ") +
             at(store.dst, store.dst_index) + " = " + at(store.src, store.src_index),
         origin);
  }

  void print(const ClusterLoad& load, int indent, const std::string& origin) {
    line(indent,
         at(load.dst, load.dst_index) + " = cluster_load x" + std::to_string(load.elements) + " " +
             at(load.src, load.src_index) + " of block " + expr_text(p_, load.block),
         origin);
  }

  void print(const WarpMma& mma, int indent, const std::string& origin) {
    line(indent,
         mma.atom + " " + at(mma.c, mma.c_index) + " += " + at(mma.a, mma.a_index) + " * " +
             at(mma.b, mma.b_index) +
             (mma.places.valid() ? " at " + at(mma.places, mma.places_index) : std::string()),
         origin);
  }

  void print(const Roles& roles, int indent, const std::string& origin) {
    for (const Role& role : roles.roles) {
      std::string text = "role " + role.name + " threads " + std::to_string(role.first_thread) + ".." +
                         std::to_string(role.first_thread + role.threads);
      if (role.registers > 0) text += " registers " + std::to_string(role.registers);
      line(indent, text + " {", origin);
      print_block(role.body, indent + 1);
      line(indent, "}");
    }
  }

  void print(const OneThread& one, int indent, const std::string& origin) {
    line(indent, "one_thread {", origin);
    print_block(one.body, indent + 1);
    line(indent, "}");
  }

  std::string barrier(int barriers, ir::ExprId index) const {
    const bool known = barriers >= 0 && static_cast<size_t>(barriers) < p_.barriers.size();
    return (known ? p_.barriers[static_cast<size_t>(barriers)].name : "?") + "[" + expr_text(p_, index) + "]";
  }

  void print(const TransactionArrive& arrive, int indent, const std::string& origin) {
    line(indent,
         "arrive " + barrier(arrive.barriers, arrive.index) +
             (arrive.bytes > 0 ? " expect " + std::to_string(arrive.bytes) + " bytes" : "") +
             (arrive.block.valid() ? " of block " + expr_text(p_, arrive.block) : "") +
             (arrive.copies ? " behind copies" : ""),
         origin);
  }

  void print(const TransactionWait& wait, int indent, const std::string& origin) {
    line(indent,
         "wait " + barrier(wait.barriers, wait.index) + " parity " + expr_text(p_, wait.parity) +
             (wait.unless.valid() ? " unless " + expr_text(p_, wait.unless) : ""),
         origin);
  }

  void print(const TransactionTest& test, int indent, const std::string& origin) {
    line(indent,
         at(test.dst, test.dst_index) + " = test " + barrier(test.barriers, test.index) + " parity " +
             expr_text(p_, test.parity),
         origin);
  }

  void print(const FetchTile& fetch, int indent, const std::string& origin) {
    line(indent, at(fetch.dst, fetch.dst_index) + " = fetch_tile", origin);
  }

  std::string box(int map, const std::vector<ir::ExprId>& coordinates) const {
    const bool known = map >= 0 && static_cast<size_t>(map) < p_.tensor_maps.size();
    std::string text = known ? p_.tensor_maps[static_cast<size_t>(map)].name : "?";
    for (size_t i = 0; i < coordinates.size(); ++i)
      text += (i == 0 ? "(" : ", ") + expr_text(p_, coordinates[i]);
    return text + ")";
  }

  void print(const TensorLoad& load, int indent, const std::string& origin) {
    line(indent,
         "tensor_load " + at(load.dst, load.dst_index) + " = " + box(load.map, load.coordinates) + " to " +
             barrier(load.barriers, load.barrier_index) + (load.announces ? ", announced" : "") +
             (load.multicast != 0 ? " of blocks " + std::to_string(load.multicast) : ""),
         origin);
  }

  void print(const TensorStore& store, int indent, const std::string& origin) {
    const std::string word = store.reduction ? std::string(ir::atomic_text(*store.reduction)) + " of " : "";
    line(indent,
         "tensor_store " + box(store.map, store.coordinates) + " = " + word + at(store.src, store.src_index),
         origin);
  }

  void print(const BulkCommit&, int indent, const std::string& origin) {
    line(indent, "bulk_commit", origin);
  }
  void print(const BulkWait& wait, int indent, const std::string& origin) {
    line(indent,
         "bulk_wait" + std::string(wait.read ? " read" : "") + " pending " + std::to_string(wait.pending),
         origin);
  }
  void print(const ProxyFence&, int indent, const std::string& origin) {
    line(indent, "proxy_fence", origin);
  }

  void print(const GridDependencyWait&, int indent, const std::string& origin) {
    line(indent, "grid_dependency_wait", origin);
  }

  void print(const ClusterBarrier&, int indent, const std::string& origin) {
    line(indent, "cluster_barrier", origin);
  }

  static std::string form(const MatrixForm& f) {
    return std::string(f.k_major ? " k_major" : " mn_major") + " swizzle " + std::to_string(f.swizzle) +
           " leading " + std::to_string(f.leading_bytes) + " stride " + std::to_string(f.stride_bytes);
  }
  static std::string steps(const std::vector<int64_t>& list) {
    std::string text;
    for (int64_t s : list) text += (text.empty() ? "" : ",") + std::to_string(s);
    return " steps " + text;
  }

  void print(const WarpgroupMma& m, int indent, const std::string& origin) {
    const bool shared = m.a.value < p_.memories.size() && p_.memory(m.a).space == Space::shared;
    std::string text = m.atom + " " + at(m.c, m.c_index);
    text += m.accumulate.valid() ? " += if " + expr_text(p_, m.accumulate) + " else =" : " +=";
    text += " " + at(m.a, m.a_index) + steps(m.a_steps) + (shared ? form(m.a_form) : " registers");
    text += " * " + at(m.b, m.b_index) + steps(m.b_steps) + form(m.b_form);
    if (m.sparse()) text += " at " + at(m.places, m.places_index);
    line(indent, text, origin);
  }
  void print(const WarpgroupFence&, int indent, const std::string& origin) {
    line(indent, "warpgroup_fence", origin);
  }
  void print(const WarpgroupCommit&, int indent, const std::string& origin) {
    line(indent, "warpgroup_commit", origin);
  }
  void print(const WarpgroupWait& wait, int indent, const std::string& origin) {
    std::string text = "warpgroup_wait pending " + std::to_string(wait.pending);
    for (MemoryId m : wait.registers) text += " " + memory_text(p_, m);
    if (wait.after_work) text += " after_work";
    line(indent, text, origin);
  }

  const ThreadProgram& p_;
  std::string out_;
};

}  // namespace

std::string print_thread_program(const ThreadProgram& p) { return Printer(p).print(); }

}  // namespace tilegen::thread
