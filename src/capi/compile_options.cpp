// What the options of a call ask of the compiler.
#include "capi/compile_options.h"

#include <algorithm>
#include <charconv>

#include "support/diag_codes.h"

namespace tilegen::capi {
namespace {

// How launches of a simulated target run.
Checked convert_simulation(const OptionValues& values, sim::SimOptions& out) {
  struct Order {
    const char* name;
    sim::WarpOrder order;
  };
  constexpr Order kOrders[] = {{"round_robin", sim::WarpOrder::round_robin},
                               {"reversed", sim::WarpOrder::reversed},
                               {"random", sim::WarpOrder::random}};
  bool known = false;
  for (const Order& o : kOrders)
    if (values.simulator_order == o.name) out.order = o.order, known = true;
  if (!known)
    return Error(DiagCode::unknown_option, "",
                 "the option 'simulator_order' cannot be '" + values.simulator_order + "'",
                 "the orders are round_robin, reversed, random");
  if (values.simulator_async != "latest" && values.simulator_async != "earliest")
    return Error(DiagCode::unknown_option, "",
                 "the option 'simulator_async' cannot be '" + values.simulator_async + "'",
                 "give latest or earliest");
  out.async_latest = values.simulator_async == "latest";
  out.seed = static_cast<uint64_t>(values.simulator_seed);
  return Unit{};
}

// "m=4096,n=512"
Expected<cost::Sizes> convert_sizes(std::string_view text, const ir::Program& program) {
  cost::Sizes sizes;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = std::min(item.find('='), item.size());
    const std::string name(item.substr(0, equals));
    const std::string_view digits = item.substr(std::min(item.size(), equals + 1));
    int64_t value = 0;
    const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || wrong != std::errc() || end != digits.data() + digits.size() || value < 0)
      return Error(DiagCode::unknown_option, "",
                   "the option 'sizes' has '" + std::string(item) + "', expected a name, '=' and a size",
                   "give sizes as m=4096,n=512");
    std::string known;
    bool is_dim = false;
    for (const ir::Var& v : program.vars) {
      const bool is_scalar = v.kind == ir::VarKind::scalar && ir::is_integer(v.type);
      if (v.kind != ir::VarKind::dim && !is_scalar) continue;
      is_dim = is_dim || v.name == name;
      known += (known.empty() ? "" : ", ") + v.name;
    }
    if (!is_dim)
      return Error(
          DiagCode::unknown_option, "",
          "the option 'sizes' names '" + name + "', which is no dim or integer scalar of the program",
          known.empty() ? "the program has none" : "it has " + known);
    sizes[name] = value;
  }
  return sizes;
}

}  // namespace

Expected<driver::CompileOptions> compile_options(const tl_context& context, const ir::Program& program,
                                                 const OptionValues& values,
                                                 const std::shared_ptr<CallbackGate>& gate) {
  driver::CompileOptions o;
  o.conversions = values.conversions;
  o.keep_ir = values.keep_ir;
  o.keep_assembly = values.keep_assembly;
  o.plan_only = values.plan_only;
  o.verify = values.verify;
  o.fallback_ms = values.timeout_ms;
  if (context.timeout_ms > 0 && (o.fallback_ms <= 0 || context.timeout_ms < o.fallback_ms))
    o.fallback_ms = context.timeout_ms;
  if (Checked ok = convert_simulation(values, o.simulation); !ok) return ok.error();
  auto sizes = convert_sizes(values.sizes, program);
  if (!sizes) return sizes.error();
  o.sizes = std::move(*sizes);
  if (!values.schedule_json.empty()) {
    auto schedule = plan::schedule_from_json(values.schedule_json, context.limits);
    if (!schedule) return schedule.error();
    o.schedule = std::move(*schedule);
  }
  if (context.dump_to)
    o.dump = [&context, gate](std::string_view stage, std::string_view text) {
      const std::string name(stage), bytes(text);
      gate->pass([&] { context.dump_to(name.c_str(), bytes.c_str(), bytes.size()); });
    };
  o.log = log_of(context);
  return o;
}

}  // namespace tilegen::capi
