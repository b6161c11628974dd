#include "engine_program.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "../differential/data.h"
#include "runtime/devices.h"

namespace tilegen::gpu {

MemoryId EngineProgram::tensor(const std::string& name, DType type, int64_t count) {
  const MemoryId id = GpuProgram::tensor(name, type);
  p.memories[id.value].alignment = 16;
  counts.push_back(count);
  return id;
}

MemoryId EngineProgram::tile(const std::string& name, DType type, int64_t elements) {
  constexpr int64_t kRepeat = 1024;
  const MemoryId id = shared(name, type, elements, 1, (p.arena_bytes + kRepeat - 1) / kRepeat * kRepeat);
  p.memories[id.value].alignment = kRepeat;
  return id;
}

int EngineProgram::barriers(const std::string& name, int64_t count, int64_t arrivals) {
  p.barriers.push_back({name, count, arrivals, barrier_bytes_});
  barrier_bytes_ += 8 * count;
  EXPECT_LE(barrier_bytes_, kBarrierBytes);
  return static_cast<int>(p.barriers.size()) - 1;
}

int EngineProgram::map(MemoryId tensor, const std::vector<int64_t>& extents,
                       const std::vector<int64_t>& strides, const std::vector<int64_t>& box, int swizzle) {
  thread::TensorMap m{
      p.memory(tensor).name + "_map" + std::to_string(p.tensor_maps.size()), tensor, {}, {}, box, swizzle};
  for (int64_t e : extents) m.extents.push_back(i(e).id);
  for (int64_t s : strides) m.strides.push_back(i(s).id);
  p.tensor_maps.push_back(std::move(m));
  return static_cast<int>(p.tensor_maps.size()) - 1;
}

void EngineProgram::spread(int64_t count, const std::function<void(E, E)>& f) {
  loop(i((count + p.threads - 1) / p.threads), LoopForm::serial, [&](E j) {
    const E at = j * p.threads + thread();
    f(at, at < count);
  });
}

int64_t swizzled_unit(int swizzle, int64_t line, int64_t unit) {
  constexpr const char* kLines[8] = {"01234567", "10325476", "23016745", "32107654",
                                     "45670123", "54761032", "67452301", "76543210"};
  const int64_t repeat = swizzle == 128 ? 8 : swizzle == 64 ? 4 : swizzle == 32 ? 2 : 1;
  return kLines[line % repeat][unit] - '0';
}

int64_t swizzled_byte(int swizzle, int64_t byte) {
  return byte / 128 * 128 + swizzled_unit(swizzle, byte / 128, byte / 16 % 8) * 16 + byte % 16;
}

EngineRun::EngineRun(const EngineProgram& p, bool orders) : program_(p), orders_(orders) {
  EXPECT_EQ(thread::verify_thread_program(p.p), std::vector<std::string>());
  static const bool has_device = differential::has_cuda_device() && runtime::find_target("cuda") &&
                                 runtime::find_target("cuda")->name == "sm_90a";
  if (has_device) device_ = std::make_unique<DeviceProgram>(p.p, p.counts, *target::find_target("sm_90a"));
}

bool EngineRun::expect_on_device(const Tensors& start, const Check& check) {
  if (!device_) return true;
  Tensors tensors = start;
  std::string wrong = device_->run(tensors);
  if (wrong.empty()) wrong = check({"the device", true}, tensors);
  EXPECT_EQ(wrong, "") << "on the device";
  return wrong.empty();
}

bool EngineRun::expect(const Tensors& start, const Check& check) {
  const target::Target target = *target::find_target("sim:sm_90a");
  bool well = true, first = true;
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    if (!well || (!orders_ && !first)) return;
    first = false;
    Tensors tensors = start;
    const std::string name = "the simulator, " + sim::test::order_name(options);
    std::string wrong = run_simulated(program_.p, target, tensors, options);
    if (wrong.empty()) wrong = check({name, false}, tensors);
    EXPECT_EQ(wrong, "") << "on " << name;
    well = wrong.empty();
  });
  return expect_on_device(start, check) && well;
}

bool EngineRun::expect_exactly(const Tensors& start, const Tensors& expected) {
  return expect(
      start, [&](const Executor&, const Tensors& actual) { return difference(program_, actual, expected); });
}

bool EngineRun::expect_finding(const Tensors& start, sim::FindingKind kind, const Tensors& expected) {
  const target::Target target = *target::find_target("sim:sm_90a");
  bool well = true;
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    Tensors tensors = start;
    const std::string text = run_simulated(program_.p, target, tensors, options);
    const std::string name = std::string(sim::finding_name(kind)) + ":";
    well &= text.find(name) != std::string::npos;
    EXPECT_NE(text.find(name), std::string::npos) << sim::test::order_name(options) << ": " << text;
  });
  return expect_on_device(start,
                          [&](const Executor&, const Tensors& actual) {
                            return difference(program_, actual, expected);
                          }) &&
         well;
}

std::string difference(const EngineProgram& p, const Tensors& actual, const Tensors& expected) {
  for (size_t t = 0; t < expected.size(); ++t) {
    if (actual[t] == expected[t]) continue;
    const auto bytes = static_cast<size_t>(ir::dtype_bytes(p.p.params[t].type));
    for (size_t i = 0; i < expected[t].size() / bytes; ++i) {
      uint64_t a = 0, e = 0;
      std::memcpy(&a, &actual[t][i * bytes], bytes);
      std::memcpy(&e, &expected[t][i * bytes], bytes);
      if (a == e) continue;
      std::array<char, 160> text;
      std::snprintf(text.data(), text.size(), "%s[%zu] has bits %#llx, expected %#llx",
                    p.p.params[t].name.c_str(), i, static_cast<unsigned long long>(a),
                    static_cast<unsigned long long>(e));
      return text.data();
    }
  }
  return {};
}

bool enough_failures() {
  constexpr int kEnough = 24;
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() >= kEnough;
}

std::vector<std::byte> random_elements(DType type, int64_t count, uint64_t seed) {
  differential::Random random(seed);
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  std::vector<std::byte> out(static_cast<size_t>(count) * bytes);
  for (size_t i = 0; i < out.size(); i += bytes) {
    uint64_t bits = random.bits() >> (64 - ir::dtype_bits(type));
    if (ir::is_float(type) && std::isnan(ir::float_from_bits(type, bits)))
      bits = ir::float_to_bits(type, std::numeric_limits<double>::quiet_NaN());
    std::memcpy(&out[i], &bits, bytes);
  }
  return out;
}

std::vector<std::byte> same_bytes(int64_t bytes, std::byte value) {
  return std::vector<std::byte>(static_cast<size_t>(bytes), value);
}

}  // namespace tilegen::gpu
