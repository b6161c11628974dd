#include "tune/measured_tuning.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/devices.h"
#include "support/diag_codes.h"
#include "tune/device_sampler.h"
#include "tune/rank.h"
#include "tune/workers.h"

namespace tilegen::tune {
namespace {

using Configurations = std::vector<Configuration>;

// What is measured of a program with `all` configurations.
size_t wanted(size_t all, const target::Target& target, const MeasureOptions& how) {
  if (how.count != 0) return std::min(how.count, all);
  return target.has_block_threads() ? std::min(kMeasured, all) : all;
}

void bind_all(Configurations& all, const Bind& bind, const Cancellation* cancellation) {
  on_workers(all.size(), 0, [&](size_t i) {
    if (stop_requested(cancellation)) return;
    auto bound = bind(all[i].values);
    bound ? void(all[i].program = std::move(*bound)) : void(all[i].refused = bound.error());
  });
}

// Without estimates: `count` of `all` at equal distances.
Configurations spread(const ir::Program& program, size_t all, size_t count) {
  Configurations out(count);
  for (size_t i = 0; i < count; ++i) out[i].values = values_of(program, i * all / count);
  return out;
}

Configurations rows_of(const Record& record, const ir::Program& program) {
  Configurations out(record.rows.size());
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t v = 0; v < program.compile_params.size(); ++v)
      out[i].values.push_back({program.compile_params[v].name, record.rows[i].values[v]});
  return out;
}

void put_in_order(Configurations& all) {
  const auto place = [](const Configuration& c) {
    const int group = c.refused ? 2 : c.measured > 0 ? 0 : 1;
    return std::tuple(group, group == 0 ? c.measured : c.microseconds);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Configuration& a, const Configuration& b) { return place(a) < place(b); });
}

// Measures those that `chosen` names and keeps what it learns there.
Checked measure(Configurations& all, const std::vector<size_t>& chosen, const target::Target& target,
                const driver::CompileOptions& options, const MeasureOptions& how) {
  std::vector<std::shared_ptr<const ir::Program>> programs;
  for (size_t c : chosen) programs.push_back(all[c].program);
  std::unique_ptr<DeviceSampler> device;
  if (!how.sample) {
    auto made = DeviceSampler::make(programs, target, options);
    if (!made) return made.error();
    device = std::move(*made);
  }
  const auto sample = [&](size_t i, size_t step, size_t steps) {
    return device ? device->sample(i) : how.sample(all[chosen[i]], step, steps);
  };
  auto times = measure_in_turn(chosen.size(), how.rounds, sample, options.cancellation);
  if (!times) return times.error();
  for (size_t i = 0; i < chosen.size(); ++i) {
    Configuration& c = all[chosen[i]];
    // Whole nanoseconds, as a record has: what is remembered prints alike.
    c.measured = static_cast<double>(std::llround(1000 * (*times)[i].microseconds)) / 1000;
    if (!(*times)[i].refused) continue;
    c.refused = std::move((*times)[i].refused);
    c.program = nullptr;
  }
  return Unit{};
}

struct Lookup {
  RecordKey key;
  cost::Sizes sizes;
};

Expected<Lookup> lookup_of(const ir::Program& program, const Bind& bind, const target::Target& target,
                           const driver::CompileOptions& options, const MeasureOptions& how) {
  const Expected<size_t> count = count_configurations(program);
  if (!count) return count.error();
  // The same whatever values the program has now.
  auto first = bind(values_of(program, 0));
  for (size_t i = 1; !first && i < *count; ++i) first = bind(values_of(program, i));
  if (!first) return first.error();
  Lookup out{record_key(**first, target.name, how.library, how.schedule_json, options.sizes), {}};
  const cost::SizedProgram sized(**first, options.sizes);
  for (size_t v = 0; v < (*first)->vars.size(); ++v)
    if (const std::string& name = (*first)->vars[v].name; out.key.bucket.count(name))
      out.sizes[name] = sized.of(ir::VarId(v)).value_or(0);
  return out;
}

Checked remember(const Configurations& all, size_t asked, const ir::Program& program, const Bind& bind,
                 const target::Target& target, const driver::CompileOptions& options,
                 const MeasureOptions& how) {
  auto lookup = lookup_of(program, bind, target, options, how);
  if (!lookup) return lookup.error();
  Record record{lookup->key, program.name, device_name(target), lookup->sizes, asked, {}};
  for (const Configuration& c : all) {
    if (c.measured <= 0) continue;
    Record::Row row{{}, c.measured};
    for (const ir::ParamBinding& v : c.values) row.values.push_back(v.value);
    record.rows.push_back(std::move(row));
  }
  return write_record(how.records, record, program);
}

// A record's times on the configurations that it has. False: there are none.
bool take_times(const Record& record, Configurations& all) {
  for (Configuration& c : all)
    for (const Record::Row& row : record.rows) {
      const bool same = std::equal(row.values.begin(), row.values.end(), c.values.begin(), c.values.end(),
                                   [](int64_t a, const ir::ParamBinding& b) { return a == b.value; });
      if (same && !c.refused) c.measured = row.microseconds;
    }
  return std::any_of(all.begin(), all.end(), [](const Configuration& c) { return c.measured > 0; });
}

}  // namespace

std::string device_name(const target::Target& target) {
  const auto found = runtime::find_device(target, runtime::kAnyDevice);
  if (!found || target.simulated) return "";
  const runtime::DeviceInfo& device = **found;
  return device.kind == runtime::DeviceKind::host
             ? device.name + ", " + std::to_string(device.cores) + (device.cores == 1 ? " core" : " cores")
             : device.name;
}

Expected<std::optional<Record>> find_record(const ir::Program& program, const Bind& bind,
                                            const target::Target& target,
                                            const driver::CompileOptions& options,
                                            const MeasureOptions& how) {
  if (how.records.empty()) return std::optional<Record>();
  const Expected<size_t> count = count_configurations(program);
  if (!count) return count.error();
  auto lookup = lookup_of(program, bind, target, options, how);
  if (!lookup) return lookup.error();
  const Note note = [&](const std::string& text) {
    say(options.log, LogLevel::warning, "tune", [&] { return text; });
  };
  auto record = find_record(how.records, lookup->key, device_name(target), program, note);
  if (record && record->asked < wanted(*count, target, how)) record.reset();
  return record;
}

Expected<Configurations> tune_by_measuring(const ir::Program& program, const Bind& bind,
                                           const target::Target& target,
                                           const driver::CompileOptions& options, const MeasureOptions& how) {
  const Expected<size_t> count = count_configurations(program);
  if (!count) return count.error();
  auto record = find_record(program, bind, target, options, how);
  if (!record) return record.error();
  const size_t asked = wanted(*count, target, how);
  Configurations all;
  if (target.has_block_threads()) {
    auto ranked = rank(program, bind, target, options);
    if (!ranked) return ranked.error();
    all = std::move(*ranked);
  } else {
    all = *record ? rows_of(**record, program) : spread(program, *count, asked);
    bind_all(all, bind, options.cancellation);
  }
  if (options.cancellation && options.cancellation->requested())
    return options.cancellation->error(program.name, "while its configurations were planned");
  std::vector<size_t> chosen;
  for (size_t i = 0; i < all.size() && chosen.size() < asked; ++i)
    if (!all[i].refused) chosen.push_back(i);
  const bool known = *record && take_times(**record, all);
  if (!known && !chosen.empty())
    if (Checked ok = measure(all, chosen, target, options, how); !ok) return ok.error();
  put_in_order(all);
  if (all.front().measured <= 0) {
    // Those that were not to be measured are no answer.
    std::erase_if(all, [](const Configuration& c) { return !c.refused; });
    return all_refused(program, target.name, "measured", all);
  }
  if (known || how.records.empty()) return all;
  if (Checked ok = remember(all, asked, program, bind, target, options, how); !ok)
    say(options.log, LogLevel::warning, "tune", [&] { return ok.error().to_text(); });
  return all;
}

Expected<Configuration> fastest(const ir::Program& program, const Bind& bind, const target::Target& target,
                                const driver::CompileOptions& options, const MeasureOptions& how) {
  auto record = find_record(program, bind, target, options, how);
  if (!record) return record.error();
  if (*record) {
    Configuration c;
    c.measured = (*record)->rows.front().microseconds;
    for (size_t i = 0; i < program.compile_params.size(); ++i)
      c.values.push_back({program.compile_params[i].name, (*record)->rows.front().values[i]});
    auto bound = bind(c.values);
    if (!bound) return bound.error();
    c.program = std::move(*bound);
    return c;
  }
  auto all = tune_by_measuring(program, bind, target, options, how);
  if (!all) return all.error();
  return std::move(all->front());
}

Expected<double> measure_program(const std::shared_ptr<const ir::Program>& program,
                                 const target::Target& target, const driver::CompileOptions& options) {
  auto device = DeviceSampler::make({&program, 1}, target, options);
  if (!device) return device.error();
  const auto sample = [&](size_t i, size_t, size_t) { return (*device)->sample(i); };
  auto times = measure_in_turn(1, kRounds, sample, options.cancellation);
  if (!times) return times.error();
  if ((*times)[0].refused) return *(*times)[0].refused;
  return (*times)[0].microseconds;
}

}  // namespace tilegen::tune
