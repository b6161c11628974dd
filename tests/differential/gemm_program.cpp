#include "gemm_program.h"

namespace tilegen::differential {

std::string gemm_text(const GemmProgram& g) {
  std::string attrs;
  for (const auto& [on, name] :
       {std::pair(g.ta, std::string("transpose_a")), {g.tb, "transpose_b"}, {!g.attrs.empty(), g.attrs}})
    if (on) attrs += (attrs.empty() ? " {" : ", ") + name;
  if (!attrs.empty()) attrs += "}";
  const bool whole = g.sum[0] == 'i';
  return replaced(
      R"(tl 1 program gemm
$bdim
dim m
dim n
dim k
tensor A: $ta[$batch$ashape] readonly
tensor B: $tb[$batch$bshape] readonly
tensor C: $tc[$batchm, n]
$tensors
kernel gemm grid ($bgridby: ceildiv(m, $M), bx: ceildiv(n, $N))$threads {
  alloc a: $sa $ta[$atile]
  alloc b: $sb $tb[$btile]
  alloc c: fragment $sum[$shape]
  $allocs
  $begin
  pipelined ko in 0 .. ceildiv(k, $K) stages $S {
    copy A[$at$aregion] -> a
    copy B[$at$bregion] -> b
    gemm a, b -> c$attrs
    $second
  }
  $epilogue
  copy $result -> C[$atby * $M :+ $M, bx * $N :+ $N]
}
)",
      {{"bdim", g.batched ? "dim batch" : ""},
       {"batch", g.batched ? "batch, " : ""},
       {"bgrid", g.batched ? "bz: batch, " : ""},
       {"ashape", g.ta ? "k, m" : "m, k"},
       {"bshape", g.tb ? "n, k" : "k, n"},
       {"atile", g.ta ? "$K, $M" : "$M, $K"},
       {"btile", g.tb ? "$N, $K" : "$K, $N"},
       {"aregion", g.ta ? "ko * $K :+ $K, by * $M :+ $M" : "by * $M :+ $M, ko * $K :+ $K"},
       {"bregion", g.tb ? "bx * $N :+ $N, ko * $K :+ $K" : "ko * $K :+ $K, bx * $N :+ $N"},
       {"attrs", attrs},
       {"begin", g.begin},
       {"sum", g.sum},
       {"shape", g.sum_shape},
       {"second", g.second},
       {"epilogue", g.epilogue},
       {"result", g.result},
       {"allocs", g.allocs},
       {"tensors", g.tensors},
       {"threads", g.threads > 0 ? " threads " + std::to_string(g.threads) : ""},
       {"zero", (whole ? "0" : "0.0") + g.sum},
       {"at", g.batched ? "bz :+ 1, " : ""},
       {"sa", g.a_scope},
       {"sb", g.b_scope},
       {"ta", g.a},
       {"tb", g.b},
       {"tc", g.out},
       {"M", std::to_string(g.m)},
       {"N", std::to_string(g.n)},
       {"K", std::to_string(g.k)},
       {"S", std::to_string(g.stages)}});
}

}  // namespace tilegen::differential
