// The hand-written specialised product of the code generator's tests on the hardware: roles, transaction
// barriers, the copy engine, warpgroup products and the launch of a persistent kernel with tensor maps, all
// exact on small integers.
#include <chrono>
#include <random>

#include "../unit/codegen/hopper_gemm_program.h"
#include "cuda_run.h"
#include "ir/text.h"
#include "launch_watch.h"
#include "runtime/device_memory.h"
#include "runtime/devices.h"
#include "runtime/executable.h"

namespace tilegen::gpu {
namespace {

using codegen::test::HopperGemm;
using codegen::test::HopperGemmShape;
using ir::DType;

uint16_t one_of(DType type) { return type == DType::f16 ? 0x3c00 : 0x3f80; }

// Bits of a small integer; exact in both types where the test uses them.
uint16_t bits_of(DType type, int v) {
  const float f = static_cast<float>(v);
  if (type == DType::bf16) return static_cast<uint16_t>(std::bit_cast<uint32_t>(f) >> 16);
  const uint32_t u = std::bit_cast<uint32_t>(f);
  return v == 0 ? 0
                : static_cast<uint16_t>((u >> 16 & 0x8000) | (((u >> 23 & 0xff) - 112) << 10) |
                                        (u >> 13 & 0x3ff));
}

class Product {
 public:
  Product(const HopperGemmShape& shape, int64_t m, int64_t n, int64_t k)
      : shape_(shape), m_(m), n_(n), k_(k) {}

  // What went wrong; "" for nothing.
  std::string run(int launches) {
    if (auto made = make(); !made.empty()) return made;
    device_ = runtime::find_device(artifact_->target, runtime::kAnyDevice) ? ordinal() : 0;
    fill(a_, m_ * k_, 1), fill(b_, n_ * k_, 2);
    c_.assign(static_cast<size_t>(m_ * n_), 0x7fff);
    std::vector<void*> memory;
    for (auto* t : {&a_, &b_, &c_}) {
      auto at = runtime::allocate_memory(device_, t->size() * 2);
      if (!at) return at.error().to_text();
      memory.push_back(*at);
      if (Checked ok = runtime::copy_memory(device_, *at, t->data(), t->size() * 2, nullptr); !ok)
        return ok.error().to_text();
    }
    std::string wrong = launch(memory, launches);
    if (wrong.empty())
      if (Checked ok = runtime::copy_memory(device_, c_.data(), memory[2], c_.size() * 2, nullptr); !ok)
        wrong = ok.error().to_text();
    for (void* at : memory) static_cast<void>(runtime::free_memory(device_, at));
    return wrong.empty() ? compare() : wrong;
  }
  double microseconds() const { return microseconds_; }

 private:
  size_t ordinal() const {
    for (size_t i = 1; i < runtime::devices().size(); ++i)
      if (runtime::devices()[i].target_name == "sm_90a") return i;
    return 0;
  }

  std::string make() {
    HopperGemm gemm(shape_);
    auto target = *target::find_target("sm_90a");
    auto ptx = codegen::compile_ptx({&gemm.program(), 1}, target, {});
    if (!ptx) return ptx.error().to_text();
    const std::string type = ir::dtype_name(shape_.type);
    auto parsed = ir::parse_program(
        "tl 1 program hopper_gemm\ndim m\ndim n\ndim k\ntensor a: " + type + "[m, k] readonly\ntensor b: " +
            type + (shape_.k_major_b ? "[n, k]" : "[k, n]") + " readonly\ntensor c: " + type +
            "[m, n]\nkernel hopper_gemm grid (g: 1) threads 128 {\n  alloc t: fragment f32[32]\n"
            "  fill t, 0f32\n}\n",
        "product.tl", Limits());
    if (!parsed) return parsed.error().to_text();
    auto artifact = std::make_shared<driver::Artifact>();
    artifact->target = target;
    artifact->program = std::make_shared<const ir::Program>(std::move(*parsed));
    artifact->kernels = {gemm.program()};
    artifact->versions = {{0, 1}};
    artifact->code = std::move(ptx->ptx);
    artifact_ = artifact;
    return {};
  }

  void fill(std::vector<uint16_t>& t, int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    t.resize(static_cast<size_t>(count));
    const uint16_t one = one_of(shape_.type), values[] = {0, one, static_cast<uint16_t>(one | 0x8000), 0};
    for (uint16_t& x : t) x = values[random() % 4];
  }

  std::string launch(const std::vector<void*>& memory, int launches) {
    auto loaded = runtime::load(artifact_, device_);
    if (!loaded) return loaded.error().to_text();
    std::vector<runtime::Argument> args;
    for (int64_t v : {m_, n_, k_}) {
      args.emplace_back();
      args.back().kind = runtime::Argument::Kind::integer;
      args.back().bits = static_cast<uint64_t>(v);
    }
    for (void* at : memory) {
      args.emplace_back();
      args.back().kind = runtime::Argument::Kind::pointer;
      args.back().bits = reinterpret_cast<uint64_t>(at);
    }
    std::vector<uint64_t> slots;
    for (const runtime::Argument& a : args) slots.push_back(a.bits);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i <= launches; ++i) {
      const differential::LaunchWatch watch(differential::describe_launch(*artifact_, slots));
      if (Checked ok = (*loaded)->launch(args, {}); !ok) return ok.error().to_text();
      if (i > 0 && i < launches) continue;
      if (Checked ok = runtime::wait_for_stream(device_, nullptr); !ok) return ok.error().to_text();
      if (i == 0) start = std::chrono::steady_clock::now();
    }
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    microseconds_ = taken.count() / std::max(launches, 1);
    return {};
  }

  int digit(uint16_t bits) const { return bits == 0 ? 0 : bits & 0x8000 ? -1 : 1; }

  // Every element of small products, some of large ones.
  std::string compare() const {
    const int64_t step = m_ * n_ * k_ > (int64_t{1} << 29) ? 9973 : 1;
    for (int64_t at = 0; at < m_ * n_; at += step) {
      const int64_t i = at / n_, j = at % n_;
      int sum = 0;
      for (int64_t x = 0; x < k_; ++x)
        sum += digit(a_[static_cast<size_t>(i * k_ + x)]) *
               digit(b_[static_cast<size_t>(shape_.k_major_b ? j * k_ + x : x * n_ + j)]);
      const uint16_t expected = bits_of(shape_.type, sum), actual = c_[static_cast<size_t>(at)];
      if ((expected & 0x7fff) != (actual & 0x7fff) || (sum != 0 && expected != actual))
        return "c[" + std::to_string(i) + ", " + std::to_string(j) + "] has bits " + std::to_string(actual) +
               ", expected " + std::to_string(expected) + " (" + std::to_string(sum) + ")";
    }
    return {};
  }

  HopperGemmShape shape_;
  int64_t m_, n_, k_;
  std::shared_ptr<const driver::Artifact> artifact_;
  size_t device_ = 0;
  std::vector<uint16_t> a_, b_, c_;
  double microseconds_ = 0;
};

TEST(WarpgroupProduct, OnTheHardware) {
  if (!differential::has_cuda_device() || runtime::find_target("cuda")->name != "sm_90a")
    GTEST_SKIP() << "no device of capability 9.0";
  struct Case {
    const char* what;
    HopperGemmShape shape;
    int64_t m, n, k;
  };
  const Case cases[] = {
      {"one tile", {}, 128, 256, 64},
      {"one tile, many steps", {}, 128, 256, 1024},
      {"edges", {}, 1000, 776, 520},
      {"B is [k, n], edges", {.k_major_b = false}, 1000, 776, 520},
      {"a producer warp", {.producer_warp = true}, 512, 512, 256},
      {"zeros first", {.clear = true}, 512, 512, 256},
      {"bf16, 3 slots", {.slots = 3, .type = DType::bf16}, 300, 520, 200},
      {"128 columns", {.bn = 128, .slots = 6}, 1000, 776, 520},
      {"more tiles than blocks", {}, 4096, 2048, 128},
  };
  for (const Case& c : cases) {
    Product product(c.shape, c.m, c.n, c.k);
    EXPECT_EQ(product.run(1), "") << c.what;
    if (HasFailure()) return;  // the context may be lost
  }
  for (bool k_major_b : {true, false}) {
    Product product({.k_major_b = k_major_b}, 4096, 4096, 4096);
    EXPECT_EQ(product.run(20), "");
    std::printf("4096^3 %s: %.0f us a launch, %.0f TFLOP/s\n", k_major_b ? "nt" : "nn",
                product.microseconds(), 2 * 4096.0 * 4096.0 * 4096.0 / product.microseconds() / 1e6);
  }
}

}  // namespace
}  // namespace tilegen::gpu
