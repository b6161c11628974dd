// Thread programs of one warp around a single instruction, run on the first CUDA device and on the simulator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../differential/cuda_run.h"
#include "../differential/data.h"
#include "sim/simulator.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::gpu {

// A warp whose lanes load their registers from tensors, execute something, and store their registers to
// tensors. Element r of lane l stands at l * registers + r.
class WarpProgram {
 public:
  explicit WarpProgram(std::string name);

  ir::ExprPool& exprs() { return program_.exprs; }
  ir::ExprId lane() { return program_.exprs.var(program_.thread_var); }
  ir::ExprId at(int64_t i) { return program_.exprs.const_int(i); }

  thread::MemoryId registers(const char* name, ir::DType type, int64_t count);
  thread::MemoryId shared(const char* name, ir::DType type, int64_t count);
  thread::MemoryId tensor(const char* name, ir::DType type, int64_t count);

  void add(thread::StmtNode node);
  thread::StmtId inside(thread::StmtNode node);  // for a block of another statement
  // registers[r] = tensor[lane * count + r], and back.
  void load(thread::MemoryId registers, thread::MemoryId tensor, int64_t count);
  void store(thread::MemoryId tensor, thread::MemoryId registers, int64_t count);

  const thread::ThreadProgram& program() const { return program_; }
  const std::vector<int64_t>& counts() const { return counts_; }  // elements of each tensor

 private:
  void each(int64_t count, const std::function<thread::StmtNode(ir::ExprId r)>& body);
  thread::ThreadProgram program_;
  std::vector<int64_t> counts_;
};

// Memory of every tensor, in order.
using Tensors = std::vector<std::vector<std::byte>>;

// A thread program whose parameters are tensors, of `counts` elements, loaded on the first CUDA device for
// any number of launches.
class DeviceProgram {
 public:
  DeviceProgram(const thread::ThreadProgram& p, const std::vector<int64_t>& counts,
                const target::Target& target);
  std::string run(Tensors& tensors);

 private:
  std::string load(const thread::ThreadProgram& p, const std::vector<int64_t>& counts,
                   const target::Target& target);
  std::unique_ptr<differential::CudaRun> loaded_;
  std::string failed_;
};

// All leave the results in `tensors`; an error text, or empty. The simulator's are its findings.
std::string run_on_device(const WarpProgram& p, const target::Target& target, Tensors& tensors);
std::string run_simulated(const thread::ThreadProgram& p, const target::Target& target, Tensors& tensors,
                          const sim::SimOptions& options = {});
inline std::string run_simulated(const WarpProgram& p, const target::Target& target, Tensors& tensors) {
  return run_simulated(p.program(), target, tensors);
}

// What one instruction is compiled and simulated for: the first CUDA device, or sm_90 where there is none.
target::Target instruction_target();
// What is wrong with the results of a program; empty for nothing.
using ResultCheck = std::function<std::string(const Tensors&)>;
// On the simulator and, where there is one, on the device. False after a failure, which is the test's.
bool expect_result(const WarpProgram& p, const target::Target& target, const Tensors& start,
                   const ResultCheck& check);
// Exactly these bytes.
bool expect_bytes(const WarpProgram& p, const target::Target& target, const Tensors& start,
                  const Tensors& expected);

std::vector<std::byte> elements(ir::DType type, int64_t count, differential::Data data, double magnitude,
                                uint64_t seed);
double element_value(ir::DType type, const std::vector<std::byte>& memory, size_t i);

}  // namespace tilegen::gpu
