#include "one_instruction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "codegen/gpu_code.h"
#include "ir/text.h"
#include "runtime/devices.h"
#include "sim/simulator.h"
#include "target/target.h"

namespace tilegen::gpu {

using ir::DType;
using ir::ExprId;
using thread::MemoryId;

WarpProgram::WarpProgram(std::string name) {
  program_.name = std::move(name);
  program_.machine = *target::find_target("sm_90a");
  program_.threads = 32;
  program_.grid = {program_.exprs.const_int(1)};
  program_.block_vars = {program_.add_var("block", ir::VarKind::block_index)};
  program_.thread_var = program_.add_var("tid", ir::VarKind::thread);
}

MemoryId WarpProgram::registers(const char* name, DType type, int64_t count) {
  thread::Memory m;
  m.name = name;
  m.space = thread::Space::local;
  m.type = type;
  m.elements = count;
  m.alignment = 16;
  m.in_registers = true;
  return program_.add_memory(std::move(m));
}

MemoryId WarpProgram::shared(const char* name, DType type, int64_t count) {
  thread::Memory m;
  m.name = name;
  m.space = thread::Space::shared;
  m.type = type;
  m.elements = count;
  m.alignment = 16;
  m.arena_offset = program_.arena_bytes;
  program_.arena_bytes += (count * ir::dtype_bytes(type) + 127) / 128 * 128;
  return program_.add_memory(std::move(m));
}

MemoryId WarpProgram::tensor(const char* name, DType type, int64_t count) {
  thread::Memory m;
  m.name = name;
  m.space = thread::Space::global;
  m.type = type;
  m.alignment = 16;
  m.param = static_cast<int>(program_.params.size());
  const MemoryId id = program_.add_memory(std::move(m));
  program_.params.push_back({thread::Param::Kind::tensor, name, type, ir::VarId(), id});
  counts_.push_back(count);
  return id;
}

void WarpProgram::add(thread::StmtNode node) { program_.body.push_back(inside(std::move(node))); }
thread::StmtId WarpProgram::inside(thread::StmtNode node) {
  return program_.add(std::move(node), program_.name);
}

void WarpProgram::each(int64_t count, const std::function<thread::StmtNode(ExprId)>& body) {
  const ir::VarId r = program_.add_var("r" + std::to_string(program_.vars.size()), ir::VarKind::loop);
  thread::Loop loop{r, program_.exprs.const_int(count), thread::LoopForm::unrolled, {}};
  loop.body = {program_.add(body(program_.exprs.var(r)), program_.name)};
  add(std::move(loop));
}

void WarpProgram::load(MemoryId registers, MemoryId tensor, int64_t count) {
  each(count, [&](ExprId r) -> thread::StmtNode {
    ir::ExprPool& e = program_.exprs;
    const ExprId index = e.add(e.mul(lane(), count), r);
    const ExprId value = e.load(tensor, program_.memory(tensor).type, std::vector<ExprId>{index});
    return thread::Store{registers, r, value, ExprId(), false, ExprId()};
  });
}

void WarpProgram::store(MemoryId tensor, MemoryId registers, int64_t count) {
  each(count, [&](ExprId r) -> thread::StmtNode {
    ir::ExprPool& e = program_.exprs;
    const ExprId value = e.load(registers, program_.memory(registers).type, std::vector<ExprId>{r});
    return thread::Store{tensor, e.add(e.mul(lane(), count), r), value, ExprId(), false, ExprId()};
  });
}

namespace {

// A tile program with the same parameters, so that the runtime can bind them.
std::string tile_program(const thread::ThreadProgram& p, const std::vector<int64_t>& counts) {
  std::string text = "tl 1 program " + p.name + "\n";
  for (size_t i = 0; i < counts.size(); ++i)
    text += "tensor " + p.params[i].name + ": " + ir::dtype_name(p.params[i].type) + "[" +
            std::to_string(counts[i]) + "]\n";
  return text + "kernel " + p.name +
         " grid (g: 1) threads 32 {\n  alloc t: fragment f32[32]\n  fill t, 0f32\n}\n";
}

}  // namespace

DeviceProgram::DeviceProgram(const thread::ThreadProgram& p, const std::vector<int64_t>& counts,
                             const target::Target& target)
    : failed_(load(p, counts, target)) {}

std::string DeviceProgram::load(const thread::ThreadProgram& p, const std::vector<int64_t>& counts,
                                const target::Target& target) {
  auto ptx = codegen::compile_ptx(std::span(&p, 1), target, {});
  if (!ptx) return ptx.error().to_text();
  auto parsed = ir::parse_program(tile_program(p, counts), "one_instruction.tl", Limits());
  if (!parsed) return parsed.error().to_text();
  auto artifact = std::make_shared<driver::Artifact>();
  artifact->target = target;
  artifact->program = std::make_shared<const ir::Program>(std::move(*parsed));
  artifact->kernels = {p};
  artifact->versions = {{0, 1}};
  artifact->code = std::move(ptx->ptx);
  loaded_ = std::make_unique<differential::CudaRun>(artifact);
  return {};
}

std::string DeviceProgram::run(Tensors& tensors) {
  if (!loaded_) return failed_;
  std::vector<differential::GuardedMemory> memory;
  std::vector<uint64_t> slots;
  for (const auto& t : tensors) {
    memory.emplace_back(t.size(), true);
    std::copy(t.begin(), t.end(), memory.back().bytes().begin());
    slots.push_back(memory.back().slot());
  }
  if (std::string error = loaded_->launch(slots, memory, 0); !error.empty()) return error;
  for (size_t i = 0; i < tensors.size(); ++i)
    std::copy(memory[i].bytes().begin(), memory[i].bytes().end(), tensors[i].begin());
  return {};
}

std::string run_on_device(const WarpProgram& p, const target::Target& target, Tensors& tensors) {
  return DeviceProgram(p.program(), p.counts(), target).run(tensors);
}

std::string run_simulated(const thread::ThreadProgram& p, const target::Target& target, Tensors& tensors,
                          const sim::SimOptions& options) {
  std::vector<uint64_t> slots;
  std::vector<sim::TensorExtent> extents;
  for (auto& t : tensors) {
    slots.push_back(reinterpret_cast<uint64_t>(t.data()));
    extents.push_back({0, static_cast<int64_t>(t.size())});
  }
  auto result = sim::simulate(p, target, slots, extents, options);
  if (!result) return result.error().to_text();
  std::string text;
  for (const sim::Finding& f : result->findings) text += f.to_text() + "\n";
  return text;
}

target::Target instruction_target() {
  if (differential::has_cuda_device())
    if (auto t = runtime::find_target("cuda")) return *t;
  return *target::find_target("sm_90");
}

bool expect_result(const WarpProgram& p, const target::Target& target, const Tensors& start,
                   const ResultCheck& check) {
  const std::vector<std::string> broken = thread::verify_thread_program(p.program());
  EXPECT_EQ(broken, std::vector<std::string>());
  bool well = broken.empty();
  for (const bool device : {false, true}) {
    if (!well || (device && !differential::has_cuda_device())) break;
    Tensors results = start;
    std::string wrong = device ? run_on_device(p, target, results) : run_simulated(p, target, results);
    if (wrong.empty()) wrong = check(results);
    EXPECT_EQ(wrong, "") << (device ? "on the device" : "on the simulator");
    well = wrong.empty();
  }
  return well;
}

bool expect_bytes(const WarpProgram& p, const target::Target& target, const Tensors& start,
                  const Tensors& expected) {
  return expect_result(p, target, start, [&](const Tensors& results) {
    for (size_t t = 0; t < expected.size(); ++t)
      for (size_t i = 0; i < expected[t].size(); ++i)
        if (results[t][i] != expected[t][i])
          return "tensor " + std::to_string(t) + ", byte " + std::to_string(i) + ": " +
                 std::to_string(static_cast<int>(results[t][i])) + ", expected " +
                 std::to_string(static_cast<int>(expected[t][i]));
    return std::string();
  });
}

std::vector<std::byte> elements(DType type, int64_t count, differential::Data data, double magnitude,
                                uint64_t seed) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  std::vector<std::byte> out(static_cast<size_t>(count) * bytes);
  differential::Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = differential::random_element(random, type, data, magnitude);
    std::memcpy(&out[static_cast<size_t>(i) * bytes], &bits, bytes);
  }
  return out;
}

double element_value(DType type, const std::vector<std::byte>& memory, size_t i) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  uint64_t bits = 0;
  std::memcpy(&bits, &memory[i * bytes], bytes);
  if (ir::is_float(type)) return ir::float_from_bits(type, bits);
  return static_cast<double>(ir::wrap_to(type, static_cast<int64_t>(bits)));
}

}  // namespace tilegen::gpu
