#include "cost/report.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tilegen::cost {

namespace {

constexpr size_t kBar = 40;  // characters

std::string format(const char* how, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* how, ...) {
  char text[256];
  va_list args;
  va_start(args, how);
  std::vsnprintf(text, sizeof text, how, args);
  va_end(args);
  return text;
}

Pipe pipe(size_t i) { return static_cast<Pipe>(i); }
int column(size_t i) { return std::max(8, static_cast<int>(std::strlen(pipe_name(pipe(i))))); }

// Of every dim, given or nominal.
Sizes taken(const ir::Program& p, const Sizes& given) {
  const SizedProgram sized(p, given);
  Sizes all;
  for (size_t v = 0; v < p.vars.size(); ++v)
    if (p.vars[v].kind == ir::VarKind::dim)
      all[p.vars[v].name] = sized.of(ir::VarId(v)).value_or(kNominalSize);
  return all;
}

std::string bar(const std::string& name, double share) {
  const auto full = static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBar));
  return format("  %-18s ", name.c_str()) + std::string(full, '#') + std::string(kBar - full, '.') +
         format(" %3.0f %%\n", 100 * share);
}

// Of the kernel's time, all multiprocessors busy.
double share(const KernelEstimate& k, double block_cycles, const target::Target& t) {
  return block_cycles * k.blocks / t.multiprocessors / std::max(k.cycles, 1.0);
}

std::string kernel_text(const KernelEstimate& k, const target::Target& t) {
  std::string out = format("\nkernel %s  %.1f us, bound by %s%s\n", k.kernel.c_str(), k.microseconds,
                           k.bound_text().c_str(), k.known ? "" : " (some lengths are unknown)");
  out += format("  blocks         %.0f, %lld at once on a multiprocessor (%s), %.2f waves\n", k.blocks,
                static_cast<long long>(k.occupancy.blocks), k.occupancy.bound, k.waves);
  out += format("  registers      about %lld of %lld\n", static_cast<long long>(k.occupancy.registers),
                static_cast<long long>(k.occupancy.may_have));
  out += format("  device memory  %.1f MB, %.1f us by themselves\n", k.memory_bytes / 1e6,
                k.memory_bytes / t.memory_bytes_per_cycle / t.clock_mhz);
  size_t wide = 6;
  for (const OpEstimate& op : k.ops) wide = std::max(wide, op.op.size());
  out += "  cycles of a multiprocessor for one block, by pipe\n";
  out += format("  %-*s %8s", static_cast<int>(wide), "op", "times");
  for (size_t i = 0; i < kPipes; ++i) out += format("  %*s", column(i), pipe_name(pipe(i)));
  out += "  KB\n";
  const auto row = [&](const std::string& name, double times, const Work& w) {
    out += format("  %-*s %8.0f", static_cast<int>(wide), name.c_str(), times);
    for (size_t i = 0; i < kPipes; ++i) out += format("  %*.0f", column(i), w[pipe(i)]);
    out += format("  %.0f\n", (w.read_bytes + w.written_bytes) / 1024);
  };
  for (const OpEstimate& op : k.ops) row(op.op, op.times, op.work);
  row("all", 1, k.block.work);
  out += "  share of the kernel's time that each is busy\n";
  for (size_t i = 0; i < kPipes; ++i) out += bar(pipe_name(pipe(i)), share(k, k.block.work[pipe(i)], t));
  out += bar("L2", share(k, k.block.work.l2_bytes / t.l2_bytes_per_cycle, t));
  out += bar("device memory", k.memory_bytes / t.memory_bytes_per_cycle / std::max(k.cycles, 1.0));
  return out;
}

std::string head(const Estimate& e, const ir::Program& p, const target::Target& t, const Sizes& sizes) {
  std::string out = format("cost on %s: %.1f us", t.name.c_str(), e.microseconds());
  const char* before = " at ";
  for (const auto& [name, size] : taken(p, sizes)) {
    out += before + name + " " + std::to_string(size);
    before = ", ";
  }
  return out + "\n";
}

nlohmann::ordered_json pipes_json(const Work& w) {
  nlohmann::ordered_json out;
  for (size_t i = 0; i < kPipes; ++i) out[pipe_name(pipe(i))] = w[pipe(i)];
  return out;
}

}  // namespace

std::string estimate_to_text(const Estimate& e, const ir::Program& p, const target::Target& t,
                             const Sizes& sizes) {
  std::string out = head(e, p, t, sizes);
  for (const KernelEstimate& k : e.kernels) out += kernel_text(k, t);
  return out;
}

std::string estimate_summary(const Estimate& e, const ir::Program& p, const target::Target& t,
                             const Sizes& sizes) {
  std::string out = head(e, p, t, sizes);
  for (const KernelEstimate& k : e.kernels)
    out += format("  %s  %.1f us, bound by %s, %.2f waves\n", k.kernel.c_str(), k.microseconds,
                  k.bound_text().c_str(), k.waves);
  return out;
}

std::string estimate_to_json(const Estimate& e, const ir::Program& p, const target::Target& t,
                             const Sizes& sizes) {
  nlohmann::ordered_json out;
  out["target"] = t.name;
  out["us"] = e.microseconds();
  out["sizes"] = taken(p, sizes);
  out["kernels"] = nlohmann::ordered_json::array();
  for (const KernelEstimate& k : e.kernels) {
    nlohmann::ordered_json kernel;
    kernel["kernel"] = k.kernel;
    kernel["us"] = k.microseconds;
    kernel["bound"] = k.bound_text();
    kernel["known"] = k.known;
    kernel["blocks"] = k.blocks;
    kernel["blocks_per_multiprocessor"] = k.occupancy.blocks;
    kernel["waves"] = k.waves;
    kernel["registers"] = k.occupancy.registers;
    kernel["registers_available"] = k.occupancy.may_have;
    kernel["memory_bytes"] = k.memory_bytes;
    nlohmann::ordered_json busy;
    for (size_t i = 0; i < kPipes; ++i) busy[pipe_name(pipe(i))] = share(k, k.block.work[pipe(i)], t);
    busy["L2"] = share(k, k.block.work.l2_bytes / t.l2_bytes_per_cycle, t);
    busy["device memory"] = k.memory_bytes / t.memory_bytes_per_cycle / std::max(k.cycles, 1.0);
    kernel["busy"] = std::move(busy);
    kernel["ops"] = nlohmann::ordered_json::array();
    for (const OpEstimate& op : k.ops)
      kernel["ops"].push_back({{"op", op.op},
                               {"times", op.times},
                               {"cycles", pipes_json(op.work)},
                               {"bytes", op.work.read_bytes + op.work.written_bytes}});
    out["kernels"].push_back(std::move(kernel));
  }
  return out.dump(1) + "\n";
}

}  // namespace tilegen::cost
