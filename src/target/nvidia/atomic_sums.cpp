// PTX ISA, "atom", "red": which sums of floats are instructions of which generation.
#include "target/atomic_sums.h"

namespace tilegen::target {

namespace {

using ir::DType;

// By type, the widest first. f64 and the integers LLVM knows by itself.
constexpr AtomicSum kSums[] = {
    {DType::f32, 16, false, 90, 81, ".v4.f32"},
    {DType::f32, 8, false, 90, 81, ".v2.f32"},
    {DType::f32, 4, true, 20, 20, ""},
    {DType::f16, 16, false, 90, 81, ".noftz.v4.f16x2"},
    {DType::f16, 8, false, 90, 81, ".noftz.v2.f16x2"},
    {DType::f16, 4, false, 60, 62, ".noftz.f16x2"},
    {DType::f16, 2, true, 70, 63, ""},
    {DType::bf16, 16, false, 90, 81, ".noftz.v4.bf16x2"},
    {DType::bf16, 8, false, 90, 81, ".noftz.v2.bf16x2"},
    {DType::bf16, 4, false, 90, 78, ".noftz.bf16x2"},
    {DType::bf16, 2, true, 90, 78, ""},
};

}  // namespace

const AtomicSum* find_atomic_sum(const thread::ThreadProgram& p, const thread::Store& s, const Target& t,
                                 int64_t bytes) {
  if (t.code != CodeFormat::ptx || s.atomic != ir::AtomicKind::add) return nullptr;
  const thread::Memory& m = p.memory(s.memory);
  for (const AtomicSum& sum : kSums)
    if (sum.type == m.type && sum.bytes <= bytes && sum.capability <= t.capability &&
        (sum.alone || m.space == thread::Space::global))
      return &sum;
  return nullptr;
}

}  // namespace tilegen::target
