#include "capi/compile_program.h"

#include <cstdio>

#include "capi/tune.h"
#include "driver/specialisations.h"
#include "support/diag_codes.h"
#include "support/worker.h"

namespace tilegen::capi {

namespace {

using Compiled = Expected<std::shared_ptr<const driver::Artifact>>;

using SharedProgram = std::shared_ptr<const ir::Program>;

Compiled compile_to_the_end(const SharedProgram& program, const tl_target& target,
                            const driver::CompileOptions& options) {
  std::optional<Compiled> done;
  Checked ran = run_on_big_stack([&] { done.emplace(driver::compile(program, target.target, options)); });
  if (!ran) return ran.error();
  return *std::move(done);
}

// All that the work touches is its own: the caller may leave it.
struct Job {
  std::shared_ptr<const ir::Program> program;
  target::Target target;
  driver::CompileOptions options;
  std::optional<Compiled> done;
};

Compiled compile_until_cancelled(const SharedProgram& program, const tl_target& target,
                                 driver::CompileOptions options, const Cancellation& call,
                                 CallbackGate& gate) {
  if (call.requested()) return call.error("", "before the compilation began");
  auto job = std::make_shared<Job>();
  job->program = program;
  job->target = target.target;
  job->options = std::move(options);
  std::string where = "before the compilation began";
  const std::shared_ptr<Log> log = job->options.log;
  auto ended = run_until_cancelled(
      [job](const Cancellation& left) {
        job->options.cancellation = &left;
        job->done.emplace(driver::compile(job->program, job->target, job->options));
        job->options = {};
      },
      call,
      [&](const std::string& place) {
        gate.close();
        if (log) log->close();
        if (!place.empty()) where = "in stage '" + place + "'";
      });
  if (!ended) return ended.error();
  if (!*ended) return call.error("", where);
  return *std::move(job->done);
}

// What every compilation of a call is given.
struct Request {
  const tl_context& context;
  const tl_program& program;
  const tl_target& target;
  const OptionValues& values;
  const CallLimits& call;
  CallbackGate& gate;
};

Compiled compile_one(const Request& r, const SharedProgram& program, driver::CompileOptions options) {
  return r.call.get() ? compile_until_cancelled(program, r.target, std::move(options), *r.call.get(), r.gate)
                      : compile_to_the_end(program, r.target, options);
}

// The program that the option `tune` chooses.
Expected<SharedProgram> choose_configuration(const Request& r, TuneChoice choice,
                                             driver::CompileOptions options) {
  const tl_program& program = r.program;
  if (choice == TuneChoice::none || program.program->compile_params.empty()) return program.program;
  const auto start = Clock::now();
  const std::shared_ptr<Log> log = options.log;
  options.cancellation = r.call.get();
  const auto words = [&](const tune::Configuration& best, double microseconds, const char* how,
                         const std::string& of) {
    char us[60];
    std::snprintf(us, sizeof us, ", %s %.1f us", how, microseconds);
    return program.program->name + " for " + r.target.target.name + ": " + tune::values_text(best.values) +
           us + of + time_since(start);
  };
  if (choice == TuneChoice::measure) {
    auto best =
        fastest_configuration(r.context, program, r.target.target, options, measure_options(r.values));
    if (!best) return best.error();
    say(log, LogLevel::info, "tune", [&] { return words(*best, best->measured, "measured", ""); });
    return best->program;
  }
  auto ranked = rank_configurations(r.context, program, r.target.target, options);
  if (!ranked) return ranked.error();
  const tune::Configuration& best = ranked->front();
  say(log, LogLevel::info, "tune", [&] {
    return words(best, best.microseconds, "estimated",
                 ", of " + std::to_string(ranked->size()) + " configurations");
  });
  return best.program;
}

// The parts of the sizes and what each has, for the log.
std::string parts_text(const tune::Specialising& plan, const driver::Specialisations& s) {
  std::string text;
  for (size_t i = 0; i < plan.forms.size(); ++i) {
    const std::string values = tune::values_text(plan.forms[i].values);
    text += (i ? "; " : "") + s.sizes_text(i) + (values.empty() ? "" : ": " + values);
  }
  return text;
}

Compiled compile_parts(const Request& r, TuneChoice choice, const std::vector<tune::SizeRange>& ranges,
                       driver::CompileOptions options) {
  const auto start = Clock::now();
  const std::shared_ptr<Log> log = options.log;
  const tune::MeasureOptions measure = measure_options(r.values);
  tune::SpecialiseOptions how;
  how.ranges = ranges;
  how.choose_values = choice != TuneChoice::none && !r.program.program->compile_params.empty();
  if (choice == TuneChoice::measure && how.choose_values) how.measure = &measure;
  if (r.values.specialisations > 0) how.most = static_cast<size_t>(r.values.specialisations);
  if (how.most > tune::kMostSpecialisations)
    return Error(DiagCode::unknown_option, "",
                 "the option 'specialisations' cannot be " + std::to_string(how.most),
                 "give " + std::to_string(tune::kMostSpecialisations) + " or less, or 0 for " +
                     std::to_string(tune::kUsualSpecialisations));
  driver::CompileOptions planning = options;
  planning.cancellation = r.call.get();
  auto plan = specialise_program(r.context, r.program, r.target.target, planning, how);
  if (!plan) return plan.error();
  driver::Specialisations s{plan->axes, plan->choice, {}};
  for (const tune::ChosenForm& form : plan->forms) {
    driver::CompileOptions each = options;
    each.sizes = form.sizes;
    auto compiled = compile_one(r, form.program, std::move(each));
    if (!compiled) return compiled.error();
    s.artifacts.push_back(std::move(*compiled));
  }
  say(log, LogLevel::info, "tune", [&] {
    char loss[60];
    std::snprintf(loss, sizeof loss, "; %.1f %% from the best of each size", 100 * plan->loss);
    return r.program.program->name + " for " + r.target.target.name + ": " + parts_text(*plan, s) + loss +
           time_since(start);
  });
  return driver::join(std::move(s));
}

}  // namespace

std::string time_since(Clock::time_point start) {
  char time[40];
  std::snprintf(time, sizeof time, " in %.3f ms",
                std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  return time;
}

Expected<std::shared_ptr<const driver::Artifact>> compile_program(
    const tl_context& context, const tl_program& program, const tl_target& target, const OptionValues& values,
    driver::CompileOptions options, const CallLimits& call, CallbackGate& gate) {
  const Request request{context, program, target, values, call, gate};
  const auto choice = tune_choice(values);
  if (!choice) return choice.error();
  const auto asked = asked_sizes(values, *program.program);
  if (!asked) return asked.error();
  if (!asked->ranges.empty()) return compile_parts(request, *choice, asked->ranges, std::move(options));
  const std::shared_ptr<Log> log = options.log;
  auto chosen = choose_configuration(request, *choice, options);
  if (!chosen) {
    say(log, LogLevel::error, "tune", [&] { return chosen.error().to_text(); });
    return chosen.error();
  }
  return compile_one(request, *chosen, std::move(options));
}

}  // namespace tilegen::capi
