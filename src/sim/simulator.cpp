#include "sim/simulator.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

#include "layout/tensor_tile.h"
#include "sim/block_executor.h"
#include "sim/compile_program.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "thread/index_program.h"

namespace tilegen::sim {

using thread::Param;
using thread::Space;

namespace {

Cell scalar_of(ir::DType type, uint64_t slot) {
  std::byte bytes[sizeof slot];
  std::memcpy(bytes, &slot, sizeof slot);
  return decode_one(type, bytes);
}

// Memories that the program writes, tensors only.
std::vector<bool> written_memories(const Bytecode& code) {
  std::vector<bool> written(code.program->memories.size());
  for (const Access& a : code.accesses)
    if (a.write) written[a.memory.value] = true;
  return written;
}

MemoryView view_of(const Bytecode& code, size_t id, std::span<const uint64_t> params,
                   std::span<const TensorExtent> extents) {
  const thread::Memory& m = code.program->memories[id];
  MemoryView v;
  v.space = m.space;
  v.type = m.type;
  v.element = ir::dtype_bytes(m.type);
  v.in_registers = m.in_registers;
  v.elements = m.elements;
  v.arena_offset = m.arena_offset;
  v.first_register = code.register_base[id];
  if (m.space == Space::global) {
    v.address = params[static_cast<size_t>(m.param)];
    v.begin = extents[static_cast<size_t>(m.param)].begin;
    v.end = extents[static_cast<size_t>(m.param)].end;
  }
  return v;
}

class Simulation {
 public:
  Simulation(const Bytecode& code, const target::Target& target, std::span<const uint64_t> params,
             std::span<const TensorExtent> extents, const SimOptions& options)
      : code_(code), program_(*code.program), options_(options) {
    launch_.code = &code;
    launch_.options = &options;
    launch_.counts_loads = target.register_copies && options.count;
    launch_.uniform = code.uniform;
    for (size_t i = 0; i < params.size(); ++i) {
      const Param& p = program_.params[i];
      if (p.kind != Param::Kind::tensor)
        launch_.uniform[code.variables[p.var.value]] = scalar_of(p.type, params[i]);
    }
    for (size_t m = 0; m < program_.memories.size(); ++m)
      launch_.memories.push_back(view_of(code, m, params, extents));
    for (const thread::TensorMap& map : program_.tensor_maps) launch_.tensor_maps.push_back(map_view(map));
    note_engines();
    watch_tensors();
    launch_.granule = 16;
    for (const thread::Memory& m : program_.memories)
      if (m.arena_offset >= 0) launch_.granule = std::min(launch_.granule, ir::dtype_bytes(m.type));
  }

  // Extents of the grid, over dims and scalars: no thread is needed.
  int64_t blocks() {
    int64_t total = 1;
    for (ir::ExprId e : program_.grid) {
      const int64_t extent = std::max<int64_t>(0, launch_value(e));
      launch_.grid.push_back(std::max<int64_t>(extent, 1));
      const auto next = checked_mul(total, extent);
      total = next ? *next : INT64_MAX;
    }
    return total;
  }

  // A persistent program is launched with fewer blocks than points where there are enough.
  int64_t launched(int64_t points) const {
    if (!program_.launched_var.valid() || points <= 1) return points;
    constexpr int64_t kFew = 2, kMax = 3;
    const int64_t clusters = points / program_.cluster;
    const int64_t resident = options_.resident_blocks / program_.cluster;
    return std::min(clusters, resident > 0 ? resident : clusters > 6 ? kMax : kFew) * program_.cluster;
  }

  Expected<SimResult> run() {
    const int64_t points = blocks();
    if (points > kMaxBlocks)
      return Error(DiagCode::launch_limit, program_.name,
                   "the grid has " + (points == INT64_MAX ? "more than 2^63" : std::to_string(points)) +
                       " blocks; at most " + std::to_string(kMaxBlocks) + " are simulated",
                   "launch with smaller dimensions");
    const int64_t total = launched(points);
    launch_.launched = total;
    if (program_.dynamic_tiles) tile_order_ = std::make_unique<TileOrder>(points, total, options_);
    launch_.tile_order = tile_order_.get();
    const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
    const int64_t wanted = options_.workers > 0 ? options_.workers : cores;
    const int64_t clusters = total / program_.cluster;
    const auto workers = static_cast<size_t>(std::clamp<int64_t>(clusters, 1, wanted));
    std::vector<std::unique_ptr<BlockExecutor>> executors;
    for (size_t i = 0; i < workers; ++i) executors.push_back(std::make_unique<BlockExecutor>(launch_));
    std::atomic<int64_t> next{0};
    std::vector<std::exception_ptr> thrown(workers);
    const auto work = [&](size_t i) noexcept {
      try {
        for (int64_t c = next++; c < clusters && !executors[i]->ended() && !executors[i]->stopped();
             c = next++)
          executors[i]->run(c);
      } catch (...) {
        thrown[i] = std::current_exception();
        next = clusters;
      }
    };
    std::vector<std::thread> threads;
    threads.reserve(workers);
    try {
      for (size_t i = 1; i < workers; ++i) threads.emplace_back(work, i);
    } catch (const std::exception&) {
      // No thread, or no memory for one: those there are do all the work.
    }
    work(0);
    for (std::thread& t : threads) t.join();
    for (const std::exception_ptr& e : thrown)
      if (e) std::rethrow_exception(e);
    if (options_.cancellation && options_.cancellation->requested())
      return options_.cancellation->error(program_.name, "while the kernel was simulated");
    return collect(executors);
  }

 private:
  void watch_tensors() {
    const std::vector<bool> written = written_memories(code_);
    std::vector<GlobalHistory::Range> ranges;
    for (size_t m = 0; m < launch_.memories.size(); ++m) {
      const MemoryView& v = launch_.memories[m];
      if (v.space == Space::global && v.end > v.begin)
        ranges.push_back({v.address + static_cast<uint64_t>(v.begin),
                          v.address + static_cast<uint64_t>(v.end), v.element, written[m]});
    }
    global_ = std::make_unique<GlobalHistory>(std::move(ranges));
    launch_.global = global_.get();
    for (MemoryView& v : launch_.memories)
      v.watched = v.space == Space::global && v.end > v.begin &&
                  global_->watches(v.address + static_cast<uint64_t>(v.begin));
  }

  TensorMapView map_view(const thread::TensorMap& map) {
    TensorMapView v;
    const MemoryView& m = launch_.memories[map.tensor.value];
    v.rank = static_cast<int>(map.box.size());
    v.element = m.element;
    v.swizzle = map.swizzle;
    const auto refuse = [&](const std::string& why) {
      if (v.problem.empty()) v.problem = "map " + map.name + ": " + why;
    };
    if (m.address % layout::kTensorUnit != 0)
      refuse("the address of " + program_.memory(map.tensor).name + " is no multiple of " +
             std::to_string(layout::kTensorUnit));
    v.strides[0] = m.element;
    for (size_t d = 0; d < map.box.size(); ++d) {
      v.extents[d] = launch_value(map.extents[d]);
      v.box[d] = map.box[d];
      v.box_elements *= map.box[d];
      if (d > 0) v.strides[d] = launch_value(map.strides[d - 1]);
      if (d > 0 &&
          (v.strides[d] % layout::kTensorUnit != 0 || v.strides[d] < 0 || v.strides[d] >= int64_t{1} << 40))
        refuse("a stride of " + std::to_string(v.strides[d]) + " bytes");
      if (v.box[d] < 1 || v.box[d] > layout::kMaxBoxExtent)
        refuse("a box of " + std::to_string(v.box[d]) + " elements");
    }
    if (v.row_bytes() % layout::kSwizzleUnit != 0)
      refuse("a box that is " + std::to_string(v.row_bytes()) + " bytes wide");
    if (v.swizzle != 0 && v.row_bytes() > v.swizzle)
      refuse("a box wider than its swizzle of " + std::to_string(v.swizzle) + " bytes");
    return v;
  }

  // What the program's engines do with each memory.
  void note_engines() {
    launch_.swizzles.resize(launch_.memories.size());
    launch_.product_inputs.resize(launch_.memories.size());
    std::vector<bool> outputs(launch_.memories.size());
    for (const thread::Stmt& s : program_.stmts) {
      if (const auto* load = std::get_if<thread::TensorLoad>(&s.node))
        launch_.swizzles[load->dst.value].push_back(
            program_.tensor_maps[static_cast<size_t>(load->map)].swizzle);
      if (const auto* product = std::get_if<thread::WarpgroupMma>(&s.node)) {
        launch_.product_inputs[product->a.value] = true;
        if (product->sparse()) launch_.product_inputs[product->places.value] = true;
        outputs[product->c.value] = true;
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) launch_.product_inputs[i] = false;
  }

  // Registers of all roles' threads against what the block is launched with.
  void check_registers(FindingSink& findings) const {
    const int64_t launched =
        program_.machine.registers_at_launch(std::max<int64_t>(1, program_.min_blocks) * program_.threads);
    for (size_t id = 0; id < program_.stmts.size(); ++id) {
      const auto* roles = std::get_if<thread::Roles>(&program_.stmts[id].node);
      if (roles == nullptr) continue;
      int64_t sum = 0;
      for (const thread::Role& r : roles->roles)
        sum += r.threads * (r.registers > 0 ? r.registers : launched);
      if (sum <= launched * program_.threads) continue;
      Event e;
      e.kind = FindingKind::register_budget;
      e.stmt = static_cast<uint32_t>(id);
      e.detail = "the roles ask for " + std::to_string(sum) + " registers, the block has " +
                 std::to_string(launched * program_.threads) + ": a thread would wait for ever";
      findings.report(std::move(e));
    }
  }

  void check_counter(FindingSink& findings) const {
    if (!tile_order_ || !tile_order_->all_ended() || tile_order_->counter() == 0) return;
    Event e;
    e.kind = FindingKind::counter_left;
    for (size_t id = 0; id < program_.stmts.size(); ++id)
      if (std::holds_alternative<thread::FetchTile>(program_.stmts[id].node))
        e.stmt = static_cast<uint32_t>(id);
    e.detail = "it is " + std::to_string(tile_order_->counter()) + ", where the next launch begins to count";
    findings.report(std::move(e));
  }

  int64_t launch_value(ir::ExprId id) {
    const ir::ExprNode& n = program_.exprs[id];
    if (n.op == ir::ExprOp::const_int) return n.imm;
    if (n.op == ir::ExprOp::var) return launch_.uniform[code_.variables[n.var().value]].i;
    const auto scalar = [&](ir::ExprId e) {
      return ir::ScalarValue{program_.exprs.type(e), launch_value(e), 0};
    };
    if (n.op == ir::ExprOp::select) return launch_value(n.a) != 0 ? launch_value(n.b) : launch_value(n.c);
    if (n.op == ir::ExprOp::cast) return ir::eval_cast(n.type, scalar(n.a)).i;
    if (ir::expr_arity(n.op) == 1) return ir::eval_unary(n.op, n.type, scalar(n.a)).i;
    const auto c = n.c.valid() ? scalar(n.c) : ir::ScalarValue();
    return ir::eval_operation(n.op, n.type, scalar(n.a), scalar(n.b), c).i;
  }

  SimResult collect(const std::vector<std::unique_ptr<BlockExecutor>>& executors) const {
    SimResult result;
    FindingSink all;
    check_registers(all);
    check_counter(all);
    std::vector<AccessSum> sums(code_.accesses.size());
    Counters& c = result.counters;
    for (const auto& e : executors) {
      all.merge(e->findings());
      for (size_t i = 0; i < sums.size(); ++i) {
        const AccessSum& s = e->accesses()[i];
        sums[i].requests += s.requests, sums[i].bytes += s.bytes;
        sums[i].transactions += s.transactions, sums[i].least += s.least;
        if (s.ahead >= 0) sums[i].ahead = sums[i].ahead < 0 ? s.ahead : std::min(sums[i].ahead, s.ahead);
      }
      const Counters& k = e->counters();
      c.statements += k.statements, c.matrix_instructions += k.matrix_instructions;
      c.barriers += k.barriers, c.shuffles += k.shuffles, c.votes += k.votes;
      c.shared_bytes += k.shared_bytes, c.global_bytes += k.global_bytes, c.async_bytes += k.async_bytes;
      c.tensor_bytes += k.tensor_bytes;
      c.load_waits += k.load_waits, c.most_loads = std::max(c.most_loads, k.most_loads);
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      const Access& a = code_.accesses[i];
      const thread::Memory& m = program_.memory(a.memory);
      if (m.in_registers) continue;
      AccessCount count{program_.stmts[a.stmt].origin,
                        m.name,
                        m.space,
                        a.action,
                        sums[i].requests,
                        sums[i].bytes,
                        sums[i].transactions,
                        sums[i].least,
                        sums[i].ahead,
                        {}};
      if (options_.locate) count.location = options_.locate(count.op);
      c.accesses.push_back(std::move(count));
    }
    result.findings = all.finish(code_, options_, &result.dropped);
    return result;
  }

  const Bytecode& code_;
  const thread::ThreadProgram& program_;
  const SimOptions& options_;
  Launch launch_;
  std::unique_ptr<GlobalHistory> global_;
  std::unique_ptr<TileOrder> tile_order_;
};

}  // namespace

bool guards_hold(const thread::ThreadProgram& program, std::span<const uint64_t> params) {
  thread::PointValues values(program.vars.size());
  for (size_t i = 0; i < program.params.size(); ++i)
    if (program.params[i].kind != thread::Param::Kind::tensor)
      values.set(program.params[i].var, static_cast<int64_t>(params[i]));
  const auto fits = [&](const thread::Guard& g, ir::ExprId elements) {
    const auto count = thread::IndexProgram(program.exprs, elements).eval(values);
    return count &&
           *count <= g.most_bytes / ir::dtype_bytes(program.params[static_cast<size_t>(g.param)].type);
  };
  return std::all_of(program.guards.begin(), program.guards.end(), [&](const thread::Guard& g) {
    return params[static_cast<size_t>(g.param)] % static_cast<uint64_t>(g.divisor) == 0 &&
           (g.most_bytes == 0 || fits(g, g.elements)) && (!g.reach.valid() || fits(g, g.reach));
  });
}

Expected<SimResult> simulate(const thread::ThreadProgram& program, const target::Target& target,
                             std::span<const uint64_t> params, std::span<const TensorExtent> extents,
                             const SimOptions& options) {
  if (params.size() != program.params.size() || extents.size() != params.size())
    return Error(DiagCode::launch_arity, program.name,
                 "expected " + std::to_string(program.params.size()) + " parameters and extents, got " +
                     std::to_string(params.size()) + " and " + std::to_string(extents.size()),
                 "pass one of each per parameter of the kernel");
  if (!guards_hold(program, params))
    return Error(DiagCode::launch_fact, program.name, "a guard of this form of the kernel does not hold",
                 "launch the form without guards");
  const thread::Machine& machine = program.machine;
  const bool of_groups = !target.warpgroup_mma.empty();
  if (machine.warp < 2 || machine.warp > kMaxLanes ||
      !std::has_single_bit(static_cast<unsigned>(machine.warp)) ||
      (of_groups && machine.warpgroup != kGroupThreads) || target.banks.row_bytes() != kBankRowBytes)
    return Error(DiagCode::target_unsupported, program.name,
                 "the simulator runs warps of up to " + std::to_string(kMaxLanes) +
                     " lanes and warpgroups of " + std::to_string(kGroupThreads) +
                     " threads, the program is for " + std::to_string(machine.warp) + " and " +
                     std::to_string(machine.warpgroup),
                 "compile for a target whose name begins with 'sim:'");
  if (Engines(program).count() * machine.warp > Engines::kMaxThreads)
    return Error(DiagCode::target_unsupported, program.name,
                 "the simulator cannot run so many transaction barriers", "use fewer slots");
  auto code = compile_program(program, target);
  if (!code) return code.error();
  return Simulation(*code, target, params, extents, options).run();
}

}  // namespace tilegen::sim
