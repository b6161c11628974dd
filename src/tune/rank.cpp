#include "tune/rank.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <tuple>

#include "driver/artifact_cost.h"
#include "support/diag_codes.h"
#include "support/worker.h"

namespace tilegen::tune {
namespace {

// How many configurations there are; nothing above kMaxConfigurations.
std::optional<size_t> count_configurations(const ir::Program& program) {
  size_t count = 1;
  for (const ir::CompileParam& p : program.compile_params) {
    // A domain has a few hundred values at most, so the product is looked at before it can wrap.
    count *= p.domain.size();
    if (count > kMaxConfigurations) return std::nullopt;
  }
  return count;
}

std::vector<ir::ParamBinding> values_of(const ir::Program& program, size_t index) {
  std::vector<ir::ParamBinding> values(program.compile_params.size());
  for (size_t i = values.size(); i-- > 0;) {
    const ir::CompileParam& p = program.compile_params[i];
    values[i] = {p.name, p.domain[index % p.domain.size()]};
    index /= p.domain.size();
  }
  return values;
}

void plan(Configuration& c, const Bind& bind, const target::Target& target,
          const driver::CompileOptions& options) {
  auto bound = bind(c.values);
  if (!bound) {
    c.refused = bound.error();
    return;
  }
  const auto artifact = driver::compile(*bound, target, options);
  if (!artifact) {
    c.refused = artifact.error();
    return;
  }
  c.program = std::move(*bound);
  c.microseconds = driver::estimate(**artifact).microseconds();
}

// Calls `each` for 0 .. count - 1 on `threads` workers, fewer where the system starts no more. What `each`
// throws ends the work and is thrown here.
void on_workers(size_t count, unsigned threads, const std::function<void(size_t)>& each) {
  std::atomic<size_t> next{0};
  std::mutex throwing;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      for (size_t i; (i = next.fetch_add(1)) < count;) each(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(throwing);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::deque<BesideWorker> beside;
    try {
      while (beside.size() + 1 < std::min<size_t>(threads, count)) beside.emplace_back(work);
    } catch (const NoThread&) {
      // Those that there are do it all.
    }
    (void)run_on_big_stack(work);  // which throws nothing
  }
  if (thrown) std::rethrow_exception(thrown);
}

Error all_refused(const ir::Program& program, const target::Target& target,
                  const std::vector<Configuration>& all) {
  Error error = *all.front().refused;
  for (Diagnostic& d : error.diagnostics)
    d.message = "of " + std::to_string(all.size()) + " configurations of '" + program.name +
                "' none can be planned for " + target.name + "; the first (" +
                values_text(all.front().values) + "): " + d.message;
  return error;
}

}  // namespace

std::string values_text(const std::vector<ir::ParamBinding>& values) {
  std::string text;
  for (const ir::ParamBinding& v : values)
    text += (text.empty() ? "" : ", ") + v.name + " " + std::to_string(v.value);
  return text;
}

Expected<std::vector<Configuration>> rank(const ir::Program& program, const Bind& bind,
                                          const target::Target& target, const driver::CompileOptions& options,
                                          unsigned threads) {
  if (!target.has_block_threads())
    return Error(DiagCode::target_unsupported, program.name,
                 "there are no estimates for target '" + target.name + "', which has no threads",
                 "bind the compile-time parameters to values");
  const std::optional<size_t> count = count_configurations(program);
  if (!count)
    return Error(DiagCode::limit_nodes, program.name,
                 "the compile-time parameters of '" + program.name + "' have more than " +
                     std::to_string(kMaxConfigurations) + " configurations",
                 "leave out values that are not worth trying");

  driver::CompileOptions planning = options;
  planning.plan_only = true;
  planning.dump = nullptr;  // of one compilation each
  planning.log = nullptr;
  planning.rejected = nullptr;
  const Cancellation* cancellation = options.cancellation;
  std::vector<Configuration> all(*count);
  if (threads == 0) threads = std::thread::hardware_concurrency();
  on_workers(all.size(), std::clamp(threads, 1u, kMaxThreads), [&](size_t i) {
    if (cancellation && cancellation->requested_lately()) return;
    all[i].values = values_of(program, i);
    plan(all[i], bind, target, planning);
  });
  if (cancellation && cancellation->requested())
    return cancellation->error(program.name, "while its configurations were planned");

  std::stable_sort(all.begin(), all.end(), [](const Configuration& a, const Configuration& b) {
    return std::tuple(a.refused.has_value(), a.microseconds) <
           std::tuple(b.refused.has_value(), b.microseconds);
  });
  if (all.front().refused) return all_refused(program, target, all);
  return all;
}

}  // namespace tilegen::tune
