// What the options of a call ask of the compiler.
#include "capi/compile_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

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

// A size and what stands behind it in the text; nothing where there is none.
std::optional<int64_t> take_size(std::string_view& text) {
  int64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// "m=4096" or "m=1..8192".
std::optional<tune::SizeRange> read_range(std::string_view item) {
  const size_t equals = std::min(item.find('='), item.size());
  const std::string name(item.substr(0, equals));
  std::string_view rest = item.substr(std::min(item.size(), equals + 1));
  const auto least = take_size(rest);
  if (!least || rest.empty())
    return least ? std::optional(tune::SizeRange{name, *least, *least}) : std::nullopt;
  if (!rest.starts_with("..")) return std::nullopt;
  rest.remove_prefix(2);
  const auto most = take_size(rest);
  if (!most || !rest.empty() || *most < *least) return std::nullopt;
  return tune::SizeRange{name, *least, *most};
}

Checked check_name(const std::string& name, const ir::Program& program) {
  std::string known;
  for (const ir::Var& v : program.vars) {
    const bool is_scalar = v.kind == ir::VarKind::scalar && ir::is_integer(v.type);
    if (v.kind != ir::VarKind::dim && !is_scalar) continue;
    if (v.name == name) return Unit{};
    known += (known.empty() ? "" : ", ") + v.name;
  }
  return Error(DiagCode::unknown_option, "",
               "the option 'sizes' names '" + name + "', which is no dim or integer scalar of the program",
               known.empty() ? "the program has none" : "it has " + known);
}

}  // namespace

Expected<AskedSizes> asked_sizes(const OptionValues& values, const ir::Program& program) {
  AskedSizes asked;
  for (std::string_view text = values.sizes; !text.empty();) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto range = read_range(item);
    if (!range)
      return Error(DiagCode::unknown_option, "",
                   "the option 'sizes' has '" + std::string(item) +
                       "', expected a name, '=' and a size, or the least and the largest",
                   "give sizes as m=4096,n=512 or m=1..8192");
    if (Checked known = check_name(range->name, program); !known) return known.error();
    asked.sizes[range->name] = range->most;
    std::erase_if(asked.ranges, [&](const tune::SizeRange& r) { return r.name == range->name; });
    if (range->least < range->most) asked.ranges.push_back(*range);
  }
  return asked;
}

Checked refuse_ranges(const OptionValues& values, const ir::Program& program, const char* call) {
  const auto asked = asked_sizes(values, program);
  if (!asked) return asked.error();
  if (asked->ranges.empty()) return Unit{};
  const tune::SizeRange& r = asked->ranges.front();
  return Error(DiagCode::unknown_option, "",
               "the option 'sizes' has a range, " + r.name + "=" + std::to_string(r.least) + ".." +
                   std::to_string(r.most) + ", and " + call + " takes one size",
               "give " + r.name + "=" + std::to_string(r.most) + ", or compile for the range");
}

Expected<driver::CompileOptions> compile_options(const tl_context& context, const ir::Program& program,
                                                 const OptionValues& values,
                                                 const std::shared_ptr<CallbackGate>& gate) {
  driver::CompileOptions o;
  o.conversions = values.conversions;
  o.keep_ir = values.keep_ir;
  o.keep_assembly = values.keep_assembly;
  o.plan_only = values.plan_only;
  o.verify = values.verify;
  o.native_text = values.native_text;
  o.fallback_ms = values.timeout_ms;
  if (context.timeout_ms > 0 && (o.fallback_ms <= 0 || context.timeout_ms < o.fallback_ms))
    o.fallback_ms = context.timeout_ms;
  if (Checked ok = convert_simulation(values, o.simulation); !ok) return ok.error();
  auto asked = asked_sizes(values, program);
  if (!asked) return asked.error();
  o.sizes = std::move(asked->sizes);
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
