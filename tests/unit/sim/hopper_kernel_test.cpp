// The specialised product that the code generator's tests, and those on the hardware, are made of: another
// hand's program than the one here, with setmaxnreg, stmatrix and a swizzled stage in passes.
#include "../codegen/hopper_gemm_program.h"

#include "specialised_gemm.h"
#include "thread/sync_verify.h"
#include "thread/transaction_verify.h"

namespace tilegen::sim::test {
namespace {

using codegen::test::HopperGemm;
using codegen::test::HopperGemmShape;

TEST(SimHopperKernel, ComputesProducts) {
  struct Case {
    HopperGemmShape shape;
    int64_t m, n, k;
  };
  const Case cases[] = {{{}, 200, 264, 136},
                        {{.k_major_b = false}, 136, 520, 200},
                        {{.producer_warp = true}, 128, 256, 256},
                        {{.clear = true}, 128, 256, 128},
                        {{.slots = 3, .type = DType::bf16}, 104, 264, 200},
                        {{.bn = 128, .slots = 6}, 264, 264, 72}};
  for (const Case& c : cases)
    for (bool latest : {true, false}) {
      HopperGemm gemm(c.shape);
      const thread::ThreadProgram& p = gemm.program();
      const auto bits = [&](int64_t v) {
        return static_cast<uint16_t>(ir::float_to_bits(c.shape.type, static_cast<double>(v)));
      };
      std::vector<uint16_t> a(static_cast<size_t>(c.m * c.k)), b(static_cast<size_t>(c.n * c.k)),
          out(static_cast<size_t>(c.m * c.n), 0xdead), expected(out.size());
      const auto at_a = [](int64_t i, int64_t x) { return (i * 7 + x * 3 + i / 16) % 3 - 1; };
      const auto at_b = [](int64_t x, int64_t j) { return (x * 5 + j * 11 + x / 8) % 3 - 1; };
      for (int64_t x = 0; x < c.k; ++x) {
        for (int64_t i = 0; i < c.m; ++i) a[static_cast<size_t>(i * c.k + x)] = bits(at_a(i, x));
        for (int64_t j = 0; j < c.n; ++j)
          b[static_cast<size_t>(c.shape.k_major_b ? j * c.k + x : x * c.n + j)] = bits(at_b(x, j));
      }
      for (int64_t i = 0; i < c.m; ++i)
        for (int64_t j = 0; j < c.n; ++j) {
          int64_t sum = 0;
          for (int64_t x = 0; x < c.k; ++x) sum += at_a(i, x) * at_b(x, j);
          expected[static_cast<size_t>(i * c.n + j)] = bits(sum);
        }
      Arguments arguments;
      int tensors = 0, dims = 0;
      for (const thread::Param& param : p.params) {
        if (param.kind == thread::Param::Kind::tensor)
          arguments.tensor(tensors == 0 ? a : tensors == 1 ? b : out), ++tensors;
        else
          arguments.dim(dims == 0 ? c.m : dims == 1 ? c.n : c.k), ++dims;
      }
      SimOptions options;
      options.async_latest = latest;
      auto r = simulate(p, sm90a(), arguments.slots, arguments.extents, options);
      ASSERT_TRUE(static_cast<bool>(r)) << r.error().to_text();
      EXPECT_EQ(texts(*r), "");
      EXPECT_EQ(out, expected);
      if (!latest) continue;  // the same program
      EXPECT_EQ(thread::verify_transactions(p), std::vector<std::string>());
      EXPECT_EQ(thread::verify_synchronization(p), std::vector<std::string>());
    }
}

}  // namespace
}  // namespace tilegen::sim::test
