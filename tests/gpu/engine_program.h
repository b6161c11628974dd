// Small thread programs around the instructions of Hopper's engines, and what they have to compute: on the
// simulator and, where there is one, on the first CUDA device.
#pragma once

#include "../unit/sim/gpu_program.h"
#include "one_instruction.h"

namespace tilegen::gpu {

using ir::DType;
using sim::test::E;
using sim::test::LoopForm;
using sim::test::op;
using thread::MemoryId;

// A block whose parameters are tensors. Barriers stand in the first bytes of the arena.
struct EngineProgram : sim::test::GpuProgram {
  std::vector<int64_t> counts;  // elements of each tensor

  explicit EngineProgram(int64_t threads) : GpuProgram(threads) { p.arena_bytes = kBarrierBytes; }

  MemoryId tensor(const std::string& name, DType type, int64_t count);
  // Shared memory that begins a repeat of every swizzle.
  MemoryId tile(const std::string& name, DType type, int64_t elements);
  int barriers(const std::string& name, int64_t count, int64_t arrivals);
  // Extents in elements, strides in bytes of dimensions 1, 2, ...
  int map(MemoryId tensor, const std::vector<int64_t>& extents, const std::vector<int64_t>& strides,
          const std::vector<int64_t>& box, int swizzle);

  void arrive(int barriers, E index, int64_t bytes) {
    add(thread::TransactionArrive{barriers, index.id, bytes}, "arrive");
  }
  void wait_for(int barriers, E index, E parity) {
    add(thread::TransactionWait{barriers, index.id, parity.id}, "wait");
  }
  // The wait is left out where the test that comes first has found the phase over.
  void test(int barriers, E index, E parity, MemoryId answer) {
    add(thread::TransactionTest{barriers, index.id, parity.id, answer, i(0).id}, "test");
  }
  void wait_unless(MemoryId answer, int barriers, E index, E parity) {
    add(thread::TransactionWait{barriers, index.id, parity.id,
                                op(ir::ExprOp::ne, load(answer, i(0)), num(0, DType::i32)).id},
        "wait");
  }
  void proxy_fence() { add(thread::ProxyFence{}, "fence"); }
  // One thread of the block.
  void first_thread(const std::function<void()>& body) { branch(thread() == 0, body); }
  // All threads: f(i) for i below `count`, where `inside` holds if the threads do not divide the count.
  void spread(int64_t count, const std::function<void(E i, E inside)>& f);

 private:
  static constexpr int64_t kBarrierBytes = 1024;
  int64_t barrier_bytes_ = 0;
};

// 16-byte unit of a line of 128 bytes that stands at place `unit` of line `line`, as the PTX ISA's tables of
// the swizzle modes have it.
int64_t swizzled_unit(int swizzle, int64_t line, int64_t unit);
// Where a byte of a tile lies, the tile beginning a repeat of the swizzle.
int64_t swizzled_byte(int swizzle, int64_t byte);

// Who runs a program.
struct Executor {
  std::string name;
  bool device = false;
};
// What is wrong with the results; empty for nothing.
using Check = std::function<std::string(const Executor&, const Tensors&)>;

// A program on its executors: the simulator under every order (`orders`; else under one) and the device, if
// its capability is 9.0.
class EngineRun {
 public:
  explicit EngineRun(const EngineProgram& p, bool orders = true);
  // Each executor begins with these tensors. False after a failure, which is the test's.
  bool expect(const Tensors& start, const Check& check);
  bool expect_exactly(const Tensors& start, const Tensors& expected);
  // The simulator has this finding and no other kind, the device these results.
  bool expect_finding(const Tensors& start, sim::FindingKind kind, const Tensors& expected);

 private:
  bool expect_on_device(const Tensors& start, const Check& check);
  const EngineProgram& program_;
  bool orders_;
  std::unique_ptr<DeviceProgram> device_;
};

// "tensor 1, element 7: 3, expected 4", in the bytes of elements; empty for equal ones.
std::string difference(const EngineProgram& p, const Tensors& actual, const Tensors& expected);

// A table goes on after a row that fails, until this says that the rest tells nothing new.
bool enough_failures();

// Elements of any bits; a NaN has those of a computed one.
std::vector<std::byte> random_elements(DType type, int64_t count, uint64_t seed);
std::vector<std::byte> same_bytes(int64_t bytes, std::byte value);

}  // namespace tilegen::gpu
