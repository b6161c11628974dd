// Schedules as JSON. The first byte of the input chooses one of a few programs and the target that compiles
// it by the schedule; the rest is the text.
#include "fuzz_target.h"
#include "ir/text.h"

using namespace tilegen;

namespace {

struct Subject {
  const char* target;
  const char* text;
};

constexpr Subject kSubjects[] = {{"sim:sm_90a", R"(tl 1 program product
dim m
dim n divisible 8
dim k divisible 8
tensor A: f16[m, k] readonly
tensor B: f16[k, n] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256 {
  alloc As: shared f16[128, 64]
  alloc Bs: shared f16[64, 128]
  alloc acc: fragment f32[128, 128]
  fill acc, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) stages 3 {
    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As
    copy B[ko * 64 :+ 64, bx * 128 :+ 128] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]
}
)"},
                                 {"sim:sm_80", R"(tl 1 program product
dim m
dim k
tensor A: f16[m, k] readonly
tensor B: f16[k, 64] readonly
tensor C: f32[m, 64]
kernel gemm grid (by: ceildiv(m, 64)) threads 128 {
  alloc As: shared f16[64, 32]
  alloc Bs: shared f16[32, 64]
  alloc acc: fragment f32[64, 64]
  fill acc, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 32) stages 2 {
    copy A[by * 64 :+ 64, ko * 32 :+ 32] -> As
    copy B[ko * 32 :+ 32, 0 :+ 64] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> C[by * 64 :+ 64, 0 :+ 64]
}
)"},
                                 {"sim:sm_80", R"(tl 1 program rows
dim n
tensor X: f32[n, 64] readonly
tensor Y: f32[n]
kernel rows grid (b: ceildiv(n, 16)) threads 64 {
  alloc x: fragment f32[16, 64]
  alloc y: fragment f32[16]
  copy X[b * 16 :+ 16, 0 :+ 64] -> x
  parallel i, j in 16, 64 {
    x[i, j] = exp(x[i, j])
  }
  reduce x -> y {axis=1}
  copy y -> Y[b * 16 :+ 16]
}
)"},
                                 {"host", R"(tl 1 program rows
dim n
tensor X: f32[n, 64] readonly
tensor Y: f32[n, 64]
kernel rows grid (b: ceildiv(n, 16)) {
  alloc x: fragment f32[16, 64]
  copy X[b * 16 :+ 16, 0 :+ 64] -> x
  parallel i, j in 16, 64 {
    x[i, j] = x[i, j] + 1.0f32
  }
  copy x -> Y[b * 16 :+ 16, 0 :+ 64]
}
)"}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Subject& subject = kSubjects[data[0] % std::size(kSubjects)];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto schedule = plan::schedule_from_json(text, fuzz::small_limits());
  if (!schedule) {
    fuzz::require_stated(schedule.error());
    return 0;
  }
  const std::string printed = plan::schedule_to_json(*schedule);
  const auto again = plan::schedule_from_json(printed, Limits());
  fuzz::require(again && *again == *schedule, "not printed as it was read:\n" + printed);
  auto program = ir::parse_program(subject.text, "subject.tl", Limits());
  fuzz::require(bool(program), "the subject parses");
  const auto artifact = fuzz::compile_briefly(std::make_shared<const ir::Program>(std::move(*program)),
                                              subject.target, std::move(*schedule));
  if (artifact) {
    const std::string full = plan::schedule_to_json((*artifact)->schedule);
    const auto read = plan::schedule_from_json(full, Limits());
    fuzz::require(read && *read == (*artifact)->schedule, "a full schedule does not read back:\n" + full);
  }
  return 0;
}
