// Runs blocks one after another on one thread of the host: warps, their masks and stacks, barriers, async
// copies. The blocks of a cluster run together: threads, barriers and shared memory of all of them are
// numbered through, and findings name them as their blocks do.
#pragma once

#include <array>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/bytecode.h"
#include "sim/engines.h"
#include "sim/findings.h"
#include "sim/global_history.h"
#include "sim/lanes.h"
#include "sim/matrix_places.h"
#include "sim/ordering.h"
#include "sim/shared_history.h"
#include "sim/simulator.h"
#include "sim/tensor_engine.h"
#include "sim/tile_order.h"
#include "sim/transaction_barriers.h"
#include "sim/warpgroup_products.h"

namespace tilegen::sim {

// A memory of the program as a launch sees it.
struct MemoryView {
  thread::Space space = thread::Space::global;
  ir::DType type = ir::DType::none;
  int element = 1;  // bytes
  bool in_registers = false;
  int64_t elements = 0;
  int64_t arena_offset = 0;
  uint32_t first_register = 0;
  uint64_t address = 0;        // global
  int64_t begin = 0, end = 0;  // global: bytes relative to the address
  bool watched = false;        // global: some parameter that the kernel writes overlaps it
};

// What all blocks share.
struct Launch {
  const Bytecode* code = nullptr;
  const SimOptions* options = nullptr;
  std::vector<MemoryView> memories;
  std::vector<Cell> uniform;  // with dims and scalars
  std::vector<int64_t> grid;
  std::vector<TensorMapView> tensor_maps;
  std::vector<std::vector<int>> swizzles;  // of the tensor loads to each memory
  std::vector<bool> product_inputs;        // memories that products only read
  int64_t launched = 1;                    // blocks
  TileOrder* tile_order = nullptr;         // of programs whose blocks claim points
  GlobalHistory* global = nullptr;
  int granule = 4;  // of the shared history
};

// Sums of one access, by access number.
struct AccessSum {
  int64_t requests = 0, bytes = 0, transactions = 0, least = 0;
};

class BlockExecutor {
 public:
  explicit BlockExecutor(const Launch& launch);
  void run(int64_t cluster);

  const FindingSink& findings() const { return findings_; }
  // Something was found and nobody wants to know more.
  bool ended() const { return options_.first_finding_ends && !findings_.empty(); }
  // The caller gave up.
  bool stopped() { return stop_(); }
  const std::vector<AccessSum>& accesses() const { return sums_; }
  const Counters& counters() const { return counters_; }

 private:
  // What a warp returns to after a loop or branch. `mask`: the lanes that entered; `other`: those of the
  // else, or of a loop those that its condition ended it for.
  struct Frame {
    uint32_t mask = 0, other = 0;
    int64_t iteration = 0;
    bool uniform = true;
    std::array<int64_t, kLanes> extent;  // [0] when uniform
  };
  // How the tiles of a product lay to each other in its instructions so far.
  struct ProductPlaces {
    uint32_t last = 0;  // statement: an instruction that comes again begins the product anew
    std::optional<int64_t> k, row, column;
    // row, column by accumulator
    std::map<std::pair<uint32_t, int64_t>, std::array<std::optional<int64_t>, 2>> sums;
  };
  enum class State : uint8_t { ready, waiting, done };
  enum class Awaited : uint8_t { barrier, transaction, warpgroup, cluster };
  struct Warp {
    int index = 0, local = 0, rank = 0;  // in the cluster, in its block; its block in the cluster
    uint32_t all = 0, mask = 0;          // lanes that exist; that run now
    uint32_t pc = 0;
    State state = State::ready;
    Awaited awaited = Awaited::barrier;  // when waiting:
    int barrier = 0;                     // the barrier, or the array of transaction barriers
    int64_t place = 0, parity = 0;       // of it
    uint32_t touched = 0;                // lanes that touched memory since the warp released what it did
    int64_t statements = 0;
    std::vector<Cell> uniform, kept, registers;
    std::vector<uint32_t> written;        // lanes by register
    std::vector<ProductPlaces> products;  // by operation, where places are known
    // by register and lane, where places are known: memory + 1 and element of it
    std::vector<uint64_t> origins;
    std::vector<Frame> frames;
    size_t depth = 0;
    std::array<uint32_t, kLanes> commits{};
    std::vector<uint32_t> copies;  // into copies_, oldest first
    std::array<uint32_t, kLanes> bulk_commits{};
    std::vector<TensorCopy> stores;  // oldest first
    // Of each register: the work of the product that has it, 0: none; 1 + the fences that it was touched
    // after.
    std::vector<uint32_t> in_product, touched_at;
    uint32_t fences = 0, product_commits = 0;
    bool has_products = false;  // some register may be in one
    Values values;
  };
  struct BarrierState {
    int64_t expected = 0, arrived = 0;
    uint32_t here = 0;  // warps of the block that have arrived
    std::vector<int> waiting;
    Ordering::Clock clock;
    uint32_t first_stmt = kNothing, last_stmt = kNothing;
  };
  struct Copy {
    uint32_t pending = 0, fetched = 0;  // lanes: not yet waited for; with a true predicate
    uint32_t dst_access = 0, src_access = 0;
    int bytes = 0;
    std::array<int64_t, kLanes> to;  // arena bytes
    std::array<uint64_t, kLanes> from;
    std::array<uint32_t, kLanes> group;
  };
  // Addresses of an access: arena bytes or absolute addresses, of the lanes in `lanes`.
  struct Addresses {
    uint32_t lanes = 0;
    std::array<int64_t, kLanes> at;
  };

  // block_executor.cpp
  void begin_block(int64_t block);
  void begin_warp(Warp& w);
  void end_block();
  Warp* next_warp();
  void run_warp(Warp& w, int64_t quantum);
  void step(Warp& w, const Step& s);
  void run_segment(Warp& w, uint32_t segment);
  void enter_loop(Warp& w, const Step& s);
  void next_iteration(Warp& w, const Step& s);
  bool start_iteration(Warp& w, const Step& begin);
  void go_on(Warp& w, const Step& s);
  void branch(Warp& w, const Step& s);
  Frame& push(Warp& w);
  uint32_t true_lanes(const Warp& w, Ref r, uint32_t among) const;
  void enter_role(Warp& w, const Step& s);
  void one_thread(Warp& w, const Step& s);
  void release(Warp& w, Ordering::Clock& clock);

  // barriers.cpp
  void barrier(Warp& w, const Step& s);
  void cluster_barrier(Warp& w, const Step& s);
  void report(Event e);
  void check_unclaimed();
  void complete(BarrierState& b);
  void report_stuck();
  std::string waiting_text(const Warp& w) const;
  bool converged(Warp& w, const Step& s, FindingKind kind);
  void step_finding(FindingKind kind, uint32_t stmt, int thread, std::string detail);
  int64_t same_for_lanes(Warp& w, const Step& s, Ref r, const char* what);

  // transaction_barriers.cpp
  // Number in its array of the barrier `index` of a block of the cluster; nothing, and a finding, where there
  // is none.
  std::optional<int64_t> transaction(Warp& w, const Step& s, int barriers, int64_t block, int64_t index);
  TransactionState& transaction_at(int barriers, int64_t at) {
    return transactions_[static_cast<size_t>(barriers)][static_cast<size_t>(at)];
  }
  void fetch_tile(Warp& w, const Step& s);
  void transaction_arrive(Warp& w, const Step& s);
  void transaction_wait(Warp& w, const Step& s);
  void transaction_test(Warp& w, const Step& s);
  void pass(Warp& w, TransactionState& t, int party);
  void advance(int barriers, int64_t index);
  void check_unfinished();
  void check_reached();
  std::string transaction_text(int barriers, int64_t index) const;

  // tensor_engine.cpp
  bool begin_copy(Warp& w, const Step& s, int map, TensorCopy& c, bool load);
  void judge_copy(Warp& w, const TensorCopy& c, bool load);
  void tensor_load(Warp& w, const Step& s);
  void tensor_store(Warp& w, const Step& s);
  void deliver(Warp& w, const Step& s, TensorCopy c, bool moves, int64_t block);
  void land(const TensorCopy& c);
  void move_out(TensorCopy& c);
  void bulk_commit(Warp& w);
  void bulk_wait(Warp& w, const Step& s);
  SharedHistory::Actor engine_actor(const Warp& w, int lane, int party, uint32_t epoch, uint32_t access);
  bool row_exists(const MemoryView& m, const TensorMapView::Row& row, int element) const;

  // warpgroup_products.cpp, warpgroup_operands.cpp
  void warpgroup_mma(Warp& w, const Step& s);
  void issue(int group);
  void judge_registers(int group, Product& p);
  bool take_registers(Warp& w, uint32_t access, thread::MemoryId memory, int64_t first, int64_t count,
                      bool read, uint32_t work);
  void judge_operand(int group, Product& p, bool of_a);
  void compute(int group, Product& p);
  void read_operand(const Product& p, bool of_a, size_t step, double* to) const;
  void warpgroup_wait(Warp& w, const Step& s);

  // memory_access.cpp
  void load(Warp& w, const Instr& n);
  void store(Warp& w, const Step& s);
  void wide_store(Warp& w, const Step& s);
  void write_lanes(Warp& w, uint32_t access, uint32_t lanes, Operand index, Operand value, bool check);
  Addresses locate(Warp& w, uint32_t access, uint32_t lanes, Operand index, bool check);
  std::byte* pointer(const MemoryView& m, int64_t at) {
    return m.space == thread::Space::global ? std::bit_cast<std::byte*>(at) : arena_.data() + at;
  }
  void check_alignment(Warp& w, uint32_t access, const Addresses& a, int64_t bytes);
  void count_access(uint32_t access, const MemoryView& m, const Addresses& a, int64_t bytes);
  void check_history(Warp& w, uint32_t access, const MemoryView& m, const Addresses& a, int64_t bytes,
                     bool whole_warp);
  void report_shared(const Trouble& t, uint32_t access, int thread, int64_t at);
  SharedHistory::Actor actor(const Warp& w, int lane, uint32_t access) const;
  FindingKind race_kind(int64_t other_thread) const;
  void access_finding(FindingKind kind, uint32_t access, int thread, int64_t element, std::string detail,
                      uint32_t other = kNothing, int64_t other_thread = -1);
  void settle_reads(uint32_t lanes);  // of a store that these lanes make
  const Cell* read_register(Warp& w, uint32_t access, uint32_t lanes, const MemoryView& m, int64_t index);
  using Origins = std::array<uint64_t, kLanes>;
  Cell* write_register(Warp& w, uint32_t access, uint32_t lanes, const MemoryView& m, int64_t index);
  void touch_register(Warp& w, uint32_t access, size_t at, uint32_t lanes, int64_t index);
  bool register_range(Warp& w, uint32_t access, const MemoryView& m, int64_t index, int64_t count);

  // element_check.cpp
  const StatementPlaces* statement_places(uint32_t stmt) const;
  int64_t tile_element(thread::MemoryId id, int thread, int64_t index) const;
  uint64_t origin_of(const Warp& w, thread::MemoryId id, int lane, int64_t index) const;
  void check_copy(Warp& w, uint32_t access, const StatementPlaces& s, uint32_t lanes, thread::MemoryId from,
                  const std::array<int64_t, kLanes>& from_index, thread::MemoryId to,
                  const std::array<int64_t, kLanes>& to_index);
  void note_move(Warp& w, const Step& s, uint32_t lanes, Operand index, Origins& origins);
  void set_origins(Warp& w, uint32_t lanes, thread::MemoryId id, int64_t index, const Origins& origins);
  void check_product(Warp& w, const Step& s);
  const MatrixPlaces& places_of(const Warp& w, thread::MemoryId id, int64_t index,
                                const std::vector<uint32_t>& table, size_t rows, size_t columns);
  void check_multiply_add(Warp& w, const Step& s, uint32_t lanes, Operand index);
  void check_order(uint32_t access, int thread, const std::vector<uint64_t>& elements, size_t rows,
                   size_t columns);
  void check_distances(Warp& w, const Step& s, const MatrixPlaces& a, const MatrixPlaces& b,
                       const MatrixPlaces& c);

  // async_copies.cpp
  void async_copy(Warp& w, const Step& s);
  void async_commit(Warp& w);
  void async_wait(Warp& w, const Step& s);
  void land(Warp& w, Copy& c, uint32_t id, uint32_t lanes);
  void move(Copy& c, int lane);
  void global_access(const Warp& w, uint32_t access, int lane, uint64_t address, int64_t bytes, bool write);
  void global_access(const SharedHistory::Actor& by, uint64_t address, int64_t bytes, bool write);
  void check_sources(const Warp& w, uint32_t access, int lane, uint64_t address, int64_t bytes);

  // warp_instructions.cpp
  void shuffle(Warp& w, const Step& s);
  void lane_reduce(Warp& w, const Step& s);
  void matrices(Warp& w, const Step& s, bool load);
  void mma(Warp& w, const Step& s);
  void gather(Warp& w, uint32_t access, const MemoryView& m, int64_t index,
              const std::vector<uint32_t>& table, double* to);

  template <class Node>
  const Node& node(const Step& s) const {
    return std::get<Node>(program_.stmts[s.stmt].node);
  }
  const MemoryView& memory(thread::MemoryId id) const { return launch_.memories[id.value]; }
  int thread_of(const Warp& w, int lane) const { return w.index * kLanes + lane; }
  int thread_in_block(const Warp& w, int lane) const { return w.local * kLanes + lane; }
  int block_threads() const { return engines_.block_warps() * kLanes; }
  // Where the arena of a block of the cluster begins.
  int64_t arena_begin(int64_t rank) const { return rank * arena_stride_; }
  // A byte of some block's arena, from where that begins.
  int64_t in_arena(int64_t at) const { return at % arena_stride_; }
  int first_thread(const Warp& w, uint32_t lanes) const {
    return thread_of(w, lanes ? __builtin_ctz(lanes) : 0);
  }
  int64_t scalar(const Warp& w, Ref r) const { return w.values.at(r)->i; }

  const Launch& launch_;
  const Bytecode& code_;
  const thread::ThreadProgram& program_;
  const SimOptions& options_;
  const Engines engines_;
  const int64_t arena_stride_;
  std::vector<Warp> warps_;
  std::vector<Cell> temporaries_;
  std::vector<std::byte> arena_;
  std::vector<BarrierState> barriers_;  // named ones of each block
  BarrierState cluster_barrier_;
  // By party and block: the newest arrival of a warp at a barrier of another block.
  struct Reach {
    uint32_t epoch = 0, stmt = 0;
    int thread = 0;
  };
  std::map<std::pair<int, int>, Reach> reached_;
  std::vector<Copy> copies_;
  std::vector<uint32_t> free_copies_;
  int64_t watched_sources_ = 0;  // async copies in flight from tensors that the kernel writes
  Ordering order_;
  SharedHistory history_;
  std::vector<std::vector<TransactionState>> transactions_;  // by array and index
  std::vector<TensorCopy> loads_;                            // under way, oldest first
  std::vector<Warpgroup> groups_;
  std::vector<int> asked_by_;         // of each party: the thread that gave it its newest work
  std::vector<uint32_t> unit_marks_;  // of 16-byte units of the arena
  uint32_t unit_mark_ = 0;
  FindingSink findings_;
  std::vector<AccessSum> sums_;
  Counters counters_;
  std::mt19937_64 random_;
  int64_t block_ = 0;
  int turn_ = 0;
  int64_t lane_element_ = 0;      // of the vectorized loop
  bool guarded_ = false;          // a store with a predicate is evaluated: not all lanes may make it
  std::vector<Event> held_back_;  // reads for it of what nothing has written, which matter where it is made
  struct WideElement {
    uint32_t lanes = 0;
    std::array<Cell, kLanes> index, value;
    Origins origins;
  };
  std::vector<WideElement> wide_;
  std::set<std::tuple<const Step*, bool, int64_t>> checked_operands_;  // of A?, by place in their slot
  std::unordered_map<MatrixSource, MatrixPlaces, MatrixSource::Hash> matrix_places_;  // seen so far
  MatrixSource asked_;  // room for what is looked up there
  bool abandoned_ = false;
  StopCheck stop_;
};

}  // namespace tilegen::sim
