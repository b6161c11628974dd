#include "thread/cooperation_verify.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "ir/group_vote.h"
#include "thread/thread_expr_text.h"

namespace tilegen::thread {

using ir::DType;
using ir::ExprId;

namespace {

constexpr int64_t kBarrierBytes = 8;
constexpr int64_t kMaxArrivals = (1 << 20) - 1;  // of a barrier, and bytes announced at once
constexpr int64_t kUnit = layout::kSwizzleUnit;  // bytes, of descriptors and boxes

std::string number(int64_t v) { return std::to_string(v); }
bool legal_swizzle(int s) {
  return s == 0 || std::count(std::begin(layout::kBoxSwizzles), std::end(layout::kBoxSwizzles), s) > 0;
}

// n and k of "wgmma.m64n<n>k<k>. ..." and "wgmma.sp.m64n<n>k<k>. ...".
struct Shape {
  int64_t n = 0, k = 0;
  bool sparse = false;
  int64_t a_k() const { return sparse ? k / 2 : k; }
};
std::optional<Shape> shape_of(const std::string& atom) {
  constexpr std::string_view kBegin = "wgmma.m64n", kSparse = "wgmma.sp.m64n";
  Shape s;
  s.sparse = atom.starts_with(kSparse);
  if (!s.sparse && !atom.starts_with(kBegin)) return std::nullopt;
  const char* end = atom.data() + atom.size();
  auto n = std::from_chars(atom.data() + (s.sparse ? kSparse : kBegin).size(), end, s.n);
  if (n.ec != std::errc() || n.ptr == end || *n.ptr != 'k') return std::nullopt;
  auto k = std::from_chars(n.ptr + 1, end, s.k);
  if (k.ec != std::errc() || s.n < 8 || s.n > 256 || s.n % 8 != 0 || s.k < 1) return std::nullopt;
  return s;
}

}  // namespace

void CooperationVerifier::check_header() {
  check_cluster();
  check_counter();
  for (const TransactionBarriers& b : p_.barriers) check_barriers(b);
  for (const TensorMap& map : p_.tensor_maps) check_map(map);
  if (!p_.launched_var.valid() || p_.launched_var.value >= p_.vars.size()) return;
  if (p_.grid.size() != 1)
    report("a persistent program with " + number(static_cast<int64_t>(p_.grid.size())) + " grid extents");
}

void CooperationVerifier::check_cluster() {
  if (p_.cluster == 1) return;
  if (p_.cluster < 1 || p_.cluster > p_.machine.max_cluster || (p_.cluster & (p_.cluster - 1)) != 0)
    return report("a cluster has " + number(p_.cluster) + " blocks, expected a power of two, at most " +
                  number(p_.machine.max_cluster));
  if (p_.grid.size() != 1)
    report("clusters of blocks in a grid of " + number(static_cast<int64_t>(p_.grid.size())) + " extents");
}

void CooperationVerifier::check_counter() {
  if (!p_.dynamic_tiles) return;
  if (!p_.launched_var.valid()) report("blocks take tiles from a counter, and the program is not persistent");
  if (p_.cluster != 1) report("blocks of a cluster take tiles from a counter");
}

void CooperationVerifier::check(const FetchTile& fetch) {
  if (!p_.dynamic_tiles) report("a fetched tile, and no counter");
  if (!check_registers("a fetched tile", fetch.dst, fetch.dst_index, 1)) return;
  if (p_.memory(fetch.dst).type != DType::i32)
    report("a fetched tile into " + p_.memory(fetch.dst).name + ", which holds " +
           ir::dtype_name(p_.memory(fetch.dst).type));
}

void CooperationVerifier::check(const Vote& vote) {
  const std::string what = "a vote";
  if (p_.threads % p_.machine.warp != 0) report(what + " in a block of " + number(p_.threads) + " threads");
  if (!ir::has_lanes(vote.lanes)) report(what + " of " + number(vote.lanes) + " lanes");
  if (vote.mode != Vote::Mode::match) {
    exprs_.check(vote.value, DType::boolean, "what is voted for");
  } else if (!vote.value.valid() || vote.value.value >= p_.exprs.size() ||
             !ir::is_integer(p_.exprs.type(vote.value))) {
    report(what + " compares what is no integer");
  } else {
    exprs_.check(vote.value, p_.exprs.type(vote.value), "what is compared");
  }
  if (!check_registers(what, vote.dst, vote.dst_index, 1)) return;
  if (p_.memory(vote.dst).type != vote_type(vote.mode))
    report(what + " into " + p_.memory(vote.dst).name + ", which holds " +
           ir::dtype_name(p_.memory(vote.dst).type));
}

void CooperationVerifier::check_barriers(const TransactionBarriers& b) {
  if (b.count < 1) return report("barriers " + b.name + " are " + number(b.count));
  if (b.arrivals < 1 || b.arrivals > kMaxArrivals)
    report("barriers " + b.name + " wait for " + number(b.arrivals) + " arrivals");
  const int64_t end = b.arena_offset + kBarrierBytes * b.count;
  if (b.arena_offset < 0 || b.arena_offset % kBarrierBytes != 0 || end > p_.arena_bytes)
    return report("barriers " + b.name + " have no place in the arena of " + number(p_.arena_bytes) +
                  " bytes");
  auto apart = [&](const std::string& other, int64_t at, int64_t bytes) {
    if (at < end && b.arena_offset < at + bytes) report("barriers " + b.name + " overlap " + other);
  };
  for (const Memory& m : p_.memories)
    if (m.arena_offset >= 0) apart(m.name, m.arena_offset, m.elements * ir::dtype_bytes(m.type));
  for (const TransactionBarriers& other : p_.barriers)
    if (&other != &b) apart(other.name, other.arena_offset, kBarrierBytes * other.count);
}

void CooperationVerifier::check_map(const TensorMap& map) {
  const std::string what = "tensor map " + map.name;
  if (!exprs_.check_memory(map.tensor, what)) return;
  const Memory& tensor = p_.memory(map.tensor);
  if (tensor.space != Space::global) report(what + ": " + tensor.name + " is not global");
  const size_t rank = map.extents.size();
  if (rank < 1 || rank > 5 || map.strides.size() + 1 != rank || map.box.size() != rank)
    return report(what + " has " + number(static_cast<int64_t>(rank)) + " extents, " +
                  number(static_cast<int64_t>(map.strides.size())) + " strides and a box of " +
                  number(static_cast<int64_t>(map.box.size())) + " dimensions");
  for (ExprId e : map.extents) exprs_.check_launch_expr(e, what + " extent");
  for (ExprId e : map.strides) {
    exprs_.check_launch_expr(e, what + " stride");
    int64_t bytes = 0;
    if (e.valid() && e.value < p_.exprs.size() && p_.exprs.is_const_int(e, &bytes) &&
        (bytes <= 0 || bytes % kUnit != 0))
      report(what + " has a stride of " + number(bytes) + " bytes, expected a multiple of 16");
  }
  for (int64_t extent : map.box)
    if (extent < 1 || extent > layout::kMaxBoxExtent)
      report(what + " has a box of " + number(extent) + " elements along a dimension");
  const int64_t row = map.box[0] * ir::dtype_bytes(tensor.type);
  if (!legal_swizzle(map.swizzle))
    return report(what + " has a swizzle of " + number(map.swizzle) + " bytes");
  if (row % kUnit != 0 || (map.swizzle != 0 && row != map.swizzle))
    report(what + " has box rows of " + number(row) + " bytes and a swizzle of " + number(map.swizzle));
}

void CooperationVerifier::check_roles(const Roles& roles, bool last_of_body) {
  if (!last_of_body) report("roles stand elsewhere than at the end of the body");
  const Machine& machine = p_.machine;
  const int64_t at_launch = machine.registers_at_launch(p_.threads * std::max<int64_t>(p_.min_blocks, 1));
  int64_t next = 0, asked = 0;
  for (const Role& role : roles.roles) {
    const std::string what = "role " + role.name;
    if (role.first_thread != next)
      report(what + " begins at thread " + number(role.first_thread) + ", expected " + number(next));
    next = role.first_thread + role.threads;
    const int64_t whole = role.registers != 0 ? machine.warpgroup : machine.warp;
    if (role.threads < 1 || role.threads % whole != 0 || role.first_thread % whole != 0)
      report(what + " is " + number(role.threads) + " threads from " + number(role.first_thread) +
             ", expected multiples of " + number(whole));
    if (role.registers != 0 &&
        (role.registers < machine.min_role_registers || role.registers > machine.max_role_registers ||
         role.registers % machine.register_unit != 0))
      report(what + " asks for " + number(role.registers) + " registers, expected a multiple of " +
             number(machine.register_unit) + " from " + number(machine.min_role_registers) + " to " +
             number(machine.max_role_registers));
    asked += role.threads * (role.registers != 0 ? role.registers : at_launch);
  }
  if (next != p_.threads)
    report("the roles make up " + number(next) + " threads of a block of " + number(p_.threads));
  if (asked > at_launch * p_.threads)
    report("the roles ask for " + number(asked) + " registers, a block is launched with " +
           number(at_launch * p_.threads));
}

void CooperationVerifier::check(const OneThread&) {
  if (threads_ % p_.machine.warp != 0) report("one thread of a warp is chosen among " + number(threads_));
}

bool CooperationVerifier::check_barrier(int barriers, ExprId index, const std::string& what) {
  if (barriers < 0 || static_cast<size_t>(barriers) >= p_.barriers.size()) {
    report(what + " names barriers that do not exist");
    return false;
  }
  const TransactionBarriers& b = p_.barriers[static_cast<size_t>(barriers)];
  int64_t at = 0;
  if (!exprs_.check(index, DType::i64, what + " index")) return false;
  if (p_.exprs.is_const_int(index, &at) && (at < 0 || at >= b.count))
    report(what + ": " + b.name + "[" + number(at) + "] of " + number(b.count));
  return true;
}

void CooperationVerifier::check(const TransactionArrive& arrive) {
  check_barrier(arrive.barriers, arrive.index, "an arrival");
  if (arrive.bytes < 0 || arrive.bytes > kMaxArrivals)
    report("an arrival announces " + number(arrive.bytes) + " bytes");
  if (arrive.copies && (arrive.bytes != 0 || arrive.block.valid()))
    report("an arrival behind copies announces bytes, or is at the barrier of another block");
  if (!arrive.block.valid()) return;
  if (p_.cluster == 1) report("an arrival at the barrier of another block, and no cluster");
  if (arrive.bytes != 0)
    report("an arrival at the barrier of another block announces " + number(arrive.bytes) + " bytes");
  int64_t block = 0;
  if (exprs_.check(arrive.block, DType::i64, "block of the cluster") &&
      p_.exprs.is_const_int(arrive.block, &block) && (block < 0 || block >= p_.cluster))
    report("an arrival at the barrier of block " + number(block) + " of a cluster of " + number(p_.cluster));
}

void CooperationVerifier::check(const ClusterBarrier&) {
  if (p_.cluster == 1) report("a barrier of the cluster, and no cluster");
}

void CooperationVerifier::check(const GridDependencyWait&) {
  if (!p_.dependent) report("a wait for the kernel in front, and the kernel is not dependent");
}

void CooperationVerifier::check(const ClusterLoad& load) {
  const std::string what = "a load from a block of the cluster";
  if (p_.cluster == 1) report(what + ", and no cluster");
  const int64_t bytes = 4 * int64_t{load.elements};
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return report(what + " of " + number(load.elements) + " elements");
  if (!check_registers(what, load.dst, load.dst_index, load.elements) || !exprs_.check_memory(load.src, what))
    return;
  const Memory &from = p_.memory(load.src), &to = p_.memory(load.dst);
  if (from.space != Space::shared || from.type != to.type || ir::dtype_bytes(from.type) != 4)
    report(what + " from " + from.name + " to " + to.name +
           "; expected shared memory and registers of one type of 4 bytes");
  exprs_.check_index(load.src, load.src_index, load.elements, what);
  if (from.arena_offset % bytes != 0)
    report(what + ": " + from.name + " lies at " + number(from.arena_offset) + ", expected a multiple of " +
           number(bytes));
  int64_t block = 0;
  if (exprs_.check(load.block, DType::i64, "block of the cluster") &&
      p_.exprs.is_const_int(load.block, &block) && (block < 0 || block >= p_.cluster))
    report(what + ": block " + number(block) + " of a cluster of " + number(p_.cluster));
}

void CooperationVerifier::check(const TransactionWait& wait) {
  check_barrier(wait.barriers, wait.index, "a wait");
  check_parity(wait.parity, "a wait");
  if (wait.unless.valid()) exprs_.check(wait.unless, DType::boolean, "answer of a test");
}

void CooperationVerifier::check(const TransactionTest& test) {
  check_barrier(test.barriers, test.index, "a test");
  check_parity(test.parity, "a test");
  if (!check_registers("a test", test.dst, test.dst_index, 1)) return;
  if (p_.memory(test.dst).type != DType::i32)
    report("a test into " + p_.memory(test.dst).name + ", which holds " +
           ir::dtype_name(p_.memory(test.dst).type));
}

void CooperationVerifier::check_parity(ExprId parity, const std::string& what) {
  int64_t known = 0;
  if (exprs_.check(parity, DType::i64, "parity") && p_.exprs.is_const_int(parity, &known) &&
      (known < 0 || known > 1))
    report(what + " for parity " + number(known));
}

void CooperationVerifier::check_box(int map_index, const std::vector<ExprId>& coordinates, MemoryId memory,
                                    ExprId index, bool load) {
  const std::string what = load ? "a tensor load" : "a tensor store";
  if (map_index < 0 || static_cast<size_t>(map_index) >= p_.tensor_maps.size())
    return report(what + " names a tensor map that does not exist");
  const TensorMap& map = p_.tensor_maps[static_cast<size_t>(map_index)];
  if (coordinates.size() != map.box.size())
    return report(what + " by " + map.name + " has " + number(static_cast<int64_t>(coordinates.size())) +
                  " coordinates");
  for (ExprId e : coordinates) exprs_.check(e, DType::i64, "coordinate");
  if (!exprs_.check_memory(memory, what) || map.tensor.value >= p_.memories.size()) return;
  const Memory &m = p_.memory(memory), &tensor = p_.memory(map.tensor);
  if (m.space != Space::shared || m.type != tensor.type)
    return report(what + " between " + tensor.name + " and " + m.name +
                  "; expected shared memory of its type");
  if (!load && tensor.read_only) report(what + ": " + tensor.name + " is read-only");
  int64_t box = 1, at = 0;
  for (int64_t extent : map.box) box *= std::clamp(extent, int64_t{1}, layout::kMaxBoxExtent);
  exprs_.check_index(memory, index, box, what);
  const int64_t aligned = box_alignment(map);
  const bool constant = index.valid() && index.value < p_.exprs.size() && p_.exprs.is_const_int(index, &at);
  const int64_t place = m.arena_offset + (constant ? at * ir::dtype_bytes(m.type) : 0);
  if (place % aligned != 0)
    report(what + ": " + m.name + " lies at " + number(place) + ", expected a multiple of " +
           number(aligned));
  const int64_t slot = m.elements / std::max<int64_t>(m.slots, 1) * ir::dtype_bytes(m.type);
  if (m.slots > 1 && slot % aligned != 0)
    report(what + ": slots of " + m.name + " take " + number(slot) + " bytes, expected a multiple of " +
           number(aligned));
}

void CooperationVerifier::check(const TensorLoad& load) {
  check_box(load.map, load.coordinates, load.dst, load.dst_index, true);
  check_barrier(load.barriers, load.barrier_index, "a tensor load");
  if (load.multicast == 0) return;
  if (p_.cluster == 1) report("a tensor load to several blocks, and no cluster");
  if (load.multicast < 0 ||
      load.multicast >= int64_t{1} << std::clamp<int64_t>(p_.cluster, 1, p_.machine.max_cluster))
    report("a tensor load to blocks " + number(load.multicast) + " (bits) of a cluster of " +
           number(p_.cluster));
}

void CooperationVerifier::check(const TensorStore& store) {
  check_box(store.map, store.coordinates, store.src, store.src_index, false);
}

void CooperationVerifier::check(const BulkWait& wait) {
  if (wait.pending < 0) report("a wait for " + number(wait.pending) + " pending bulk groups");
}

void CooperationVerifier::check_warpgroup(const std::string& what) {
  if (threads_ % p_.machine.warpgroup != 0 || first_ % p_.machine.warpgroup != 0)
    report(what + " among " + number(threads_) + " threads from " + number(first_) +
           ", expected whole warpgroups");
}

bool CooperationVerifier::check_registers(const std::string& what, MemoryId memory, ExprId index,
                                          int64_t elements) {
  if (!exprs_.check_memory(memory, what)) return false;
  if (!p_.memory(memory).in_registers) {
    report(what + ": " + p_.memory(memory).name + " is not in registers");
    return false;
  }
  exprs_.check_index(memory, index, elements, what);
  return true;
}

// Bytes from the first to the last of [rows x k], and of the steps after one another.
void CooperationVerifier::check_shared_operand(const std::string& what, MemoryId memory, ExprId index,
                                               const MatrixForm& form, const std::vector<int64_t>& steps,
                                               int64_t rows, int64_t k) {
  if (!exprs_.check_memory(memory, what)) return;
  const Memory& m = p_.memory(memory);
  if (m.space != Space::shared) return report(what + ": " + m.name + " is not shared");
  if (!legal_swizzle(form.swizzle) || form.stride_bytes < 0 || form.leading_bytes < 0 ||
      form.stride_bytes % kUnit != 0 || form.leading_bytes % kUnit != 0)
    return report(what + ": " + m.name + " has a form with swizzle " + number(form.swizzle) + ", distances " +
                  number(form.leading_bytes) + " and " + number(form.stride_bytes));
  const int64_t element = std::max<int64_t>(ir::dtype_bytes(m.type), 1),
                width = std::max<int64_t>(form.swizzle, kUnit);
  // Within its row an instruction goes on along k; it knows no distance to the next.
  if (form.k_major && form.swizzle != 0 && k * element > form.swizzle)
    return report(what + ": " + number(k) + " elements along k are more than a row of " +
                  number(form.swizzle) + " bytes of " + m.name);
  const int64_t across = form.k_major ? k : rows, groups = (form.k_major ? rows : k) / 8;
  const int64_t rows_across = (across * element + width - 1) / width;
  // Without a swizzle the two distances of rows along m or n change their parts.
  const bool swapped = form.swizzle == 0 && !form.k_major;
  const int64_t of_groups = swapped ? form.leading_bytes : form.stride_bytes;
  const int64_t of_rows = swapped ? form.stride_bytes : form.leading_bytes;
  const int64_t last = std::max<int64_t>(groups - 1, 0) * of_groups + (rows_across - 1) * of_rows;
  const int64_t run = form.k_major ? std::min(across * element, width) : width;
  int64_t farthest = 0;
  for (int64_t s : steps) {
    if (s < 0 || s * element % kUnit != 0) report(what + ": a step of " + number(s) + " elements");
    farthest = std::max(farthest, s);
  }
  const int64_t span = farthest + (last + 7 * width + run) / element;
  exprs_.check_index(memory, index, span, what);
  if (span > m.elements)
    report(what + ": " + number(span) + " elements are more than " + m.name + "[" + number(m.elements) +
           "] has");
}

void CooperationVerifier::check(const WarpgroupMma& mma) {
  check_warpgroup(mma.atom);
  const auto shape = shape_of(mma.atom);
  if (!shape) return report("'" + mma.atom + "' is no product of a warpgroup");
  if (mma.a_steps.empty() || mma.a_steps.size() != mma.b_steps.size())
    return report(mma.atom + " has " + number(static_cast<int64_t>(mma.a_steps.size())) + " steps of A and " +
                  number(static_cast<int64_t>(mma.b_steps.size())) + " of B");
  if (mma.accumulate.valid()) exprs_.check(mma.accumulate, DType::boolean, "accumulate");
  check_registers(mma.atom + " C", mma.c, mma.c_index, shape->n / 2);
  if (!exprs_.check_memory(mma.a, mma.atom + " A")) return;
  if (p_.memory(mma.a).in_registers) {
    const int64_t farthest = *std::max_element(mma.a_steps.begin(), mma.a_steps.end());
    check_registers(mma.atom + " A", mma.a, mma.a_index, farthest + shape->a_k() / 2);
  } else {
    check_shared_operand(mma.atom + " A", mma.a, mma.a_index, mma.a_form, mma.a_steps, 64, shape->a_k());
  }
  check_places(mma, shape->sparse);
  check_shared_operand(mma.atom + " B", mma.b, mma.b_index, mma.b_form, mma.b_steps, shape->n, shape->k);
}

void CooperationVerifier::check_places(const WarpgroupMma& mma, bool sparse) {
  if (mma.sparse() != sparse) return report(mma.atom + (sparse ? " without places" : " with places"));
  if (!sparse) return;
  check_registers(mma.atom + " places", mma.places, mma.places_index,
                  static_cast<int64_t>(mma.a_steps.size()));
  if (p_.memory(mma.places).type != DType::u32)
    report(mma.atom + " with places in " + p_.memory(mma.places).name + ", expected words of u32");
}

void CooperationVerifier::check(const WarpgroupWait& wait) {
  check_warpgroup("a warpgroup wait");
  if (wait.pending < 0) report("a wait for " + number(wait.pending) + " pending warpgroup groups");
  for (MemoryId m : wait.registers)
    if (exprs_.check_memory(m, "a warpgroup wait") && !p_.memory(m).in_registers)
      report("a warpgroup wait for " + p_.memory(m).name + ", which is not in registers");
}

}  // namespace tilegen::thread
