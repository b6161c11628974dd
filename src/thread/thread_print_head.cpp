#include "thread/thread_print_head.h"

#include <utility>

#include "thread/thread_expr_text.h"

namespace tilegen::thread {
namespace {

class HeadPrinter {
 public:
  explicit HeadPrinter(const ThreadProgram& p) : p_(p) {}

  std::string print() {
    out_ += "thread_program " + p_.name + " threads " + std::to_string(p_.threads);
    if (p_.thread_var.valid()) out_ += " (" + var_text(p_, p_.thread_var) + ")";
    out_ += " arena " + std::to_string(p_.arena_bytes) + "\ngrid";
    for (size_t i = 0; i < p_.grid.size(); ++i) {
      const auto var = i < p_.block_vars.size() ? p_.block_vars[i] : ir::VarId();
      out_ += (i > 0 ? ", " : " ") + var_text(p_, var) + ": " + expr_text(p_, p_.grid[i]);
    }
    if (p_.launched_var.valid()) out_ += " persistent over " + var_text(p_, p_.launched_var);
    if (p_.dynamic_tiles) out_ += ", dynamic tiles";
    if (p_.cluster > 1) out_ += " clusters of " + std::to_string(p_.cluster);
    if (p_.dependent) out_ += " dependent";
    if (p_.overlapping_blocks) out_ += " overlapping";
    if (p_.most_registers > 0) out_ += "\nmost_registers " + std::to_string(p_.most_registers);
    if (p_.min_blocks > 1) out_ += "\nmin_blocks " + std::to_string(p_.min_blocks);
    out_ += "\nparams\n";
    for (const Param& param : p_.params) print_param(param);
    if (!p_.guards.empty()) out_ += "guards\n";
    for (const Guard& guard : p_.guards) print_guard(guard);
    out_ += "memories\n";
    for (const Memory& memory : p_.memories) print_memory(memory);
    if (!p_.barriers.empty()) out_ += "barriers\n";
    for (const TransactionBarriers& b : p_.barriers)
      out_ += "  " + b.name + "[" + std::to_string(b.count) + "] arrivals " + std::to_string(b.arrivals) +
              " arena@" + std::to_string(b.arena_offset) + "\n";
    if (!p_.divisors.empty()) out_ += "divisors\n";
    for (ir::ExprId d : p_.divisors) out_ += "  " + expr_text(p_, d) + "\n";
    if (!p_.tensor_maps.empty()) out_ += "tensor_maps\n";
    for (const TensorMap& map : p_.tensor_maps) print_map(map);
    return std::move(out_);
  }

 private:
  void print_param(const Param& param) {
    const char* kind = param.kind == Param::Kind::dim      ? "dim "
                       : param.kind == Param::Kind::scalar ? "scalar "
                                                           : "tensor ";
    out_ += std::string("  ") + kind + param.name + ": " + ir::dtype_name(param.type) + " = ";
    out_ += param.kind == Param::Kind::tensor ? memory_text(p_, param.memory) : var_text(p_, param.var);
    out_ += "\n";
  }

  void print_guard(const Guard& guard) {
    const bool known = guard.param >= 0 && static_cast<size_t>(guard.param) < p_.params.size();
    out_ += "  " + (known ? p_.params[static_cast<size_t>(guard.param)].name : "?") + " is a multiple of " +
            std::to_string(guard.divisor);
    if (guard.most_bytes > 0)
      out_ += ", its " + expr_text(p_, guard.elements) + " elements have at most " +
              std::to_string(guard.most_bytes) + " bytes";
    if (guard.reach.valid()) out_ += ", as have " + expr_text(p_, guard.reach);
    for (size_t i = 0; i + 1 < guard.bounds.size(); i += 2)
      out_ += "; the hardware tells " + expr_text(p_, guard.bounds[i]) + " of [" +
              expr_text(p_, guard.bounds[i + 1]) + "]";
    out_ += "\n";
  }

  static const char* caching_name(Caching c) {
    return c == Caching::evict_first  ? "evict_first"
           : c == Caching::evict_last ? "evict_last"
                                      : "no_allocate";
  }
  void print_memory(const Memory& m) {
    out_ += std::string("  ") + space_name(m.space) + " " + m.name + ": " + ir::dtype_name(m.type);
    if (m.elements > 0) out_ += "[" + std::to_string(m.elements) + "]";
    if (m.slots > 1) out_ += " slots " + std::to_string(m.slots);
    out_ += " align " + std::to_string(m.alignment);
    if (m.arena_offset >= 0) out_ += " arena@" + std::to_string(m.arena_offset);
    if (m.in_registers) out_ += " registers";
    if (m.read_only) out_ += " readonly";
    if (m.param >= 0) out_ += " param " + std::to_string(m.param);
    if (m.loads != Caching::usual) out_ += std::string(" loads ") + caching_name(m.loads);
    if (m.stores != Caching::usual) out_ += std::string(" stores ") + caching_name(m.stores);
    out_ += "\n";
  }

  void print_map(const TensorMap& map) {
    const auto list = [](const auto& values, auto&& text) {
      std::string out;
      for (const auto& v : values) out += (out.empty() ? "" : ", ") + text(v);
      return "[" + out + "]";
    };
    const auto expr = [&](ir::ExprId e) { return expr_text(p_, e); };
    out_ += "  " + map.name + ": " + memory_text(p_, map.tensor) + " extents " + list(map.extents, expr) +
            " strides " + list(map.strides, expr) + " box " +
            list(map.box, [](int64_t b) { return std::to_string(b); }) + " swizzle " +
            std::to_string(map.swizzle) + "\n";
  }

  const ThreadProgram& p_;
  std::string out_;
};

}  // namespace

std::string head_text(const ThreadProgram& p) { return HeadPrinter(p).print(); }

}  // namespace tilegen::thread
