// Attention as a user writes it, in every form that the tests need: copies, two products, row maxima and sums
// and a mask in one loop over the keys.
#pragma once

#include <cstdlib>
#include <optional>

#include "hopper_plan.h"
#include "matrix.h"

namespace tilegen::differential {

struct Attention {
  std::string type = "f16";
  int64_t dim = 64, rows = 64, keys = 64;  // of a head, of a tile
  int threads = 128, stages = 2;
  int64_t group = 1;                   // heads of queries to a head of keys
  std::optional<int64_t> left, right;  // keys seen before and after the query's place
  bool cap = false, packed = false, heads_last = false, row_sums = false;
  bool mask_in_branch = false;       // where a block of keys ends after the last
  std::string weights = "fragment";  // memory they are kept in
  bool scaled_queries = false;       // by threads, before the loop
  bool guarded = false;              // nothing is done where the tile has no query
};

inline std::string loop_text(const Attention& a) {
  std::string seen = "kb * $K + j < $keys";
  if (a.right) seen += " and kb * $K + j <= bq * $M + i + $keys - $queries + $right";
  if (a.left) seen += " and kb * $K + j >= bq * $M + i + $keys - $queries - $left";
  return replaced(
      R"(pipelined kb in $first .. ceildiv($end, $K) stages $S {
    copy K[$kbox] -> Ks
    gemm Qs, Ks -> scores {transpose_b, clear}
    $mask
    copy top -> before
    reduce scores -> top {kind=max, axis=1, accumulate}
    parallel i, j in $M, $K {
      scores[i, j] = exp2(scores[i, j]$scale - top[i]$scale)
    }
    parallel i in $M {
      before[i] = exp2((before[i] - top[i])$scale)
    }
    reduce scores -> part {axis=1}
    parallel i in $M {
      total[i] = total[i] * before[i] + part[i]
    }
    copy scores -> weights
    parallel i, j in $M, $D {
      out[i, j] = out[i, j] * before[i]
    }
    copy V[$kbox] -> Vs
    gemm weights, Vs -> out
  })",
      {{"mask", a.mask_in_branch ? "if kb * $K + $K > $keys {\n$each\n}" : "$each"},
       {"each", "parallel i, j in $M, $K {\n      scores[i, j] = select($seen, $score, -inf:f32)\n    }"},
       {"seen", seen},
       {"score", a.cap ? "tanh(scores[i, j] * 0.06f32) * 3.0f32" : "scores[i, j]"},
       {"scale", a.cap || a.scaled_queries ? "" : " * 0.18f32"}});
}

inline std::string store_text(const Attention& a) {
  std::string text;
  if (a.row_sums)
    text = R"(parallel i in $M {
    if bq * $M + i < $queries {
      L[$lrow] = (top[i]$scale + log2(total[i])) * 0.6931472f32
    }
  }
  )";
  text += R"(parallel i in $M {
    total[i] = select(total[i] > 0.0f32, 1.0f32 / total[i], 0.0f32)
  }
  parallel i, j in $M, $D {
    out[i, j] = out[i, j] * total[i]
  }
  )";
  text += !a.packed ? "copy out -> O[$qbox]" : R"(if bq * $M + $M <= $queries {
    copy out -> O[$qbox]
  } else {
    parallel i, j in $M, $D {
      if bq * $M + i < $queries {
        O[$qrow + i, bh, j] = cast($type, out[i, j])
      }
    }
  })";
  return replaced(text, {{"scale", a.cap || a.scaled_queries ? "" : " * 0.18f32"},
                         {"lrow", a.packed ? "bh, $qrow + i" : "bb, bh, $qrow + i"}});
}

inline std::string attention_text(const Attention& a) {
  const std::string qbegin = "max(cast(i64, query_ends[bb]), 0)", kbegin = "cast(i64, key_ends[bb])";
  const auto box = [&](const char* row, const char* rows, const char* head) {
    if (a.packed)
      return replaced("$row :+ $rows, $head :+ 1, 0 :+ $D", {{"rows", rows}, {"row", row}, {"head", head}});
    return replaced(a.heads_last ? "bb :+ 1, $row :+ $rows, $head :+ 1, 0 :+ $D"
                                 : "bb :+ 1, $head :+ 1, $row :+ $rows, 0 :+ $D",
                    {{"rows", rows}, {"row", row}, {"head", head}});
  };
  const auto shape = [&](const char* length, const char* heads) {
    const char* order = a.packed       ? "all_$length, $heads, $D"
                        : a.heads_last ? "batch, $length, $heads, $D"
                                       : "batch, $heads, $length, $D";
    return replaced(order, {{"length", length}, {"heads", heads}});
  };
  std::string end = a.right ? "min($keys, bq * $M + $M + $keys - $queries + $right)" : "$keys";
  if (a.packed && !a.guarded) end = "select(bq * $M < $queries, " + end + ", 0)";
  return replaced(
      R"(tl 1 program attention
dim batch
dim heads
dim queries
$dims
tensor Q: $type[$qshape] readonly
tensor K: $type[$kshape] readonly
tensor V: $type[$kshape] readonly
$ends
tensor O: $type[$qshape]
$sums
kernel attention grid (bb: batch, bh: heads * $G, bq: ceildiv(queries, $M)) threads $T {
  alloc Qs: shared $type[$M, $D]
  alloc Ks: shared $type[$K, $D]
  alloc Vs: shared $type[$K, $D]
  alloc scores: fragment f32[$M, $K]
  alloc weights: $weights $type[$M, $K]
  alloc out: fragment f32[$M, $D]
  alloc top: fragment f32[$M]
  alloc before: fragment f32[$M]
  alloc part: fragment f32[$M]
  alloc total: fragment f32[$M]
  $guard
  $query
  fill out, 0.0f32
  fill total, 0.0f32
  fill top, -1e30f32
  $loop
  $store
  $endguard
}
)",
      {{"loop", loop_text(a)},
       {"weights", a.weights},
       {"query", !a.scaled_queries ? "copy Q[$qbox] -> Qs" : R"(alloc Qr: shared $type[$M, $D]
  copy Q[$qbox] -> Qr
  parallel i, j in $M, $D {
    Qs[i, j] = cast($type, cast(f32, Qr[i, j]) * 0.18f32)
  })"},
       {"store", store_text(a)},
       {"guard", a.guarded ? "if bq * $M < $queries {" : ""},
       {"endguard", a.guarded ? "}" : ""},
       {"dims", a.packed ? "dim all_queries\ndim all_keys" : "dim keys"},
       {"ends", a.packed
                    ? "tensor query_ends: i32[batch + 1] readonly\ntensor key_ends: i32[batch + 1] readonly"
                    : ""},
       {"sums", !a.row_sums ? ""
                : a.packed  ? "tensor L: f32[heads * $G, all_queries]"
                            : "tensor L: f32[batch, heads * $G, queries]"},
       {"qshape", shape("queries", a.group == 1 ? "heads" : "heads * $G")},
       {"kshape", shape("keys", "heads")},
       {"first", a.left ? "max(bq * $M + $keys - $queries - $left, 0) // $K" : "0"},
       {"end", end},
       {"qbox", box("$qrow", "$M", "bh")},
       {"kbox", box("$krow", "$K", a.group == 1 ? "bh" : "bh // $G")},
       {"qrow", (a.packed ? qbegin + " + " : "") + "bq * $M"},
       {"krow", (a.packed ? kbegin + " + " : "") + "kb * $K"},
       {"queries", a.packed ? "(cast(i64, query_ends[bb + 1]) - " + qbegin + ")" : "queries"},
       {"keys", a.packed ? "(cast(i64, key_ends[bb + 1]) - " + kbegin + ")" : "keys"},
       {"left", std::to_string(a.left.value_or(0))},
       {"right", std::to_string(a.right.value_or(0))},
       {"type", a.type},
       {"D", std::to_string(a.dim)},
       {"G", std::to_string(a.group)},
       {"M", std::to_string(a.rows)},
       {"K", std::to_string(a.keys)},
       {"T", std::to_string(a.threads)},
       {"S", std::to_string(a.stages)}});
}

// Empty: both products are warpgroups', the second lags behind the first, and results leave by tensor copies.
inline std::string plan_refusal(const std::string& text) {
  plan::KernelSchedule k;
  if (std::string why = plan_on_hopper(text, k); !why.empty()) return why;
  int products = 0, stores = 0;
  for (const plan::OpPlan& op : k.ops) {
    const bool inside = op.op.find("/kb/") != std::string::npos;
    if (inside && op.op.find("/gemm#") != std::string::npos)
      products += op.engine == plan::Engine::warpgroup_mma;
    if (!inside && op.op.find("/copy#") != std::string::npos)
      stores += op.engine == plan::Engine::tensor_copy;
  }
  if (products != 2) return "a product is not done by warpgroups";
  if (stores != 2) return "Q or O does not go by tensor copies";
  for (const auto& [op, stage] : k.loops[0].stages)
    if (op.ends_with("/kb/gemm#1") && stage == k.loops[0].num_stages) return "";
  return "the second product does not lag";
}

// How blocks walk over the tiles, given.
inline plan::Schedule persistence(const std::string& order, bool skip_empty_tiles = false) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "attention";
  given.kernels[0].persistence =
      plan::PersistencePlan{order != "none", order == "none" ? "static" : order, skip_empty_tiles, ""};
  return given;
}

// Which launches of a program are run: all of three, of more every other one, beginning with the first or the
// second as the text chooses, so that the programs together have them all.
inline bool is_run(size_t number, size_t of, const std::string& text) {
  return of <= 3 || long_run() || std::getenv("TILEGEN_TARGETS") || (number + text.size()) % 2 == 0;
}

// As planned.
inline std::string walk_order(const std::string& text) {
  plan::KernelSchedule k;
  if (std::string why = plan_on_hopper(text, k); !why.empty()) return why;
  return k.persistence->persistent ? k.persistence->order : "none";
}

enum class On { specialised, hopper, all };

// Where TILEGEN_TARGETS names a device everything runs there too; schedules of producers where there can be
// one.
inline Strings targets(On on) {
  const bool asked = std::getenv("TILEGEN_TARGETS") != nullptr;
  Strings list = on == On::all || asked ? executable_targets() : Strings{};
  if (on == On::all && !asked) list.insert(list.end(), {"sim:sm_80", "sim:gfx942"});
  list.push_back("sim:sm_90a");
  if (on == On::specialised)
    std::erase_if(list, [](const std::string& name) {
      const auto t = target::find_target(name);
      return !t || !t->tensor_copy;
    });
  return list;
}

}  // namespace tilegen::differential
