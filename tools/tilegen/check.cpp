// Runs a program on the simulator of a GPU: what is wrong with it, and what its accesses cost.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "library.h"
#include "result_comparison.h"
#include "result_forms.h"
#include "run_arguments.h"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

// One way to run: what the simulator found, and whether the values are those of the interpreter.
struct Run {
  std::string order, async;
  Json report;
  std::vector<std::string> wrong;  // tensors
  size_t findings() const {
    size_t n = 0;
    for (const Json& kernel : report["kernels"]) n += kernel["findings"].size();
    return n;
  }
};

std::vector<std::string> choices(const CommandLine& line, const std::string& name,
                                 const std::string& fallback, const std::vector<std::string>& all) {
  const std::string value = line.get_or(name, fallback);
  if (value == "all") return all;
  if (std::find(all.begin(), all.end(), value) != all.end()) return {value};
  std::string known;
  for (const std::string& a : all) known += a + ", ";
  fail_usage("--" + name + " is one of " + known + "all; got '" + value + "'");
}

Artifact compile_for(const Context& context, const Program& program, const CommandLine& line,
                     const Run& run) {
  const std::string target = line.get_or("target", "sm_80");
  const Options options = make_options();
  tl_error* error = nullptr;
  require(tl_options_set_str(options.get(), "simulator_order", run.order.c_str(), &error), error,
          "setting an option");
  require(tl_options_set_str(options.get(), "simulator_async", run.async.c_str(), &error), error,
          "setting an option");
  require(tl_options_set_i64(options.get(), "simulator_seed", seed_of(line), &error), error,
          "setting an option");
  if (const auto schedule = line.get("schedule"))
    require(
        tl_options_set_str(options.get(), "schedule_json", read_schedule(context, *schedule).c_str(), &error),
        error, "giving the schedule");
  return compile(context, program,
                 find_target(context, target.rfind("sim:", 0) == 0 ? target : "sim:" + target), options);
}

// A launch that fails with findings has a report; any other failure ends the program.
void launch(const Context& context, const Artifact& artifact, RunArguments& arguments, Run& run) {
  tl_kernel* loaded = nullptr;
  tl_error* error = nullptr;
  require(tl_kernel_load(context.get(), artifact.get(), TL_DEVICE_ANY, &loaded, &error), error, "loading");
  const Kernel kernel(loaded);
  const std::vector<tl_arg> args = arguments.launch_arguments();
  const tl_status status = tl_kernel_launch(kernel.get(), nullptr, args.data(), args.size(), &error);
  tl_kernel_info info{};
  info.struct_size = sizeof info;
  require(tl_kernel_describe(kernel.get(), 0, &info, nullptr), nullptr, "reading the report");
  if (!*info.log) require(status, error, "launching");
  tl_error_release(error);
  run.report = Json::parse(info.log);
}

std::string place(const Json& site) {
  if (!site.contains("line")) return "";
  return site.value("file", "") + ":" + std::to_string(site["line"].get<int64_t>()) + ":" +
         std::to_string(site["column"].get<int64_t>()) + ": ";
}

void print_findings(const Run& run) {
  for (const Json& kernel : run.report["kernels"]) {
    for (const Json& f : kernel["findings"]) {
      const int64_t count = f["count"];
      std::printf("%s%s: %s: %s%s\n", place(f["site"]).c_str(), f["kind"].get<std::string>().c_str(),
                  f["site"]["op"].get<std::string>().c_str(), f["message"].get<std::string>().c_str(),
                  count > 1 ? (" (" + std::to_string(count) + " times)").c_str() : "");
      std::printf("    way out: %s\n", f["hint"].get<std::string>().c_str());
    }
    if (kernel["dropped"] > 0) std::printf("and %s more\n", kernel["dropped"].dump().c_str());
  }
}

// Accesses of one operation to one memory in one row; of what costs nothing beyond the least only the sum
// shows.
void print_counters(const Json& report) {
  for (const Json& kernel : report["kernels"]) {
    const Json& c = kernel["counters"];
    std::printf("%lld statements of warps, %lld matrix instructions, %lld barriers, %lld shuffles\n",
                c["statements"].get<long long>(), c["matrix_instructions"].get<long long>(),
                c["barriers"].get<long long>(), c["shuffles"].get<long long>());
    std::printf("%-32s %-14s %-13s %10s %12s %12s %12s\n", "operation", "memory", "access", "requests",
                "bytes", "transactions", "at least");
    std::vector<Json> rows;
    for (const Json& a : c["accesses"]) {
      const auto same = [&](const Json& r) {
        return r["op"] == a["op"] && r["memory"] == a["memory"] && r["action"] == a["action"];
      };
      const auto row = std::find_if(rows.begin(), rows.end(), same);
      if (row == rows.end()) {
        rows.push_back(a);
        continue;
      }
      for (const char* n : {"requests", "bytes", "transactions", "least"})
        (*row)[n] = (*row)[n].get<int64_t>() + a[n].get<int64_t>();
    }
    for (const Json& r : rows)
      std::printf("%-32s %-14s %-13s %10lld %12lld %12lld %12lld%s\n", r["op"].get<std::string>().c_str(),
                  r["memory"].get<std::string>().c_str(), r["action"].get<std::string>().c_str(),
                  r["requests"].get<long long>(), r["bytes"].get<long long>(),
                  r["transactions"].get<long long>(), r["least"].get<long long>(),
                  r["transactions"] > r["least"] ? "  *" : "");
  }
}

// NAME=VALUE after the file is --NAME VALUE; behind --param it is what that takes.
CommandLine parse(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool pair = !word.empty() && word[0] != '-' && word.find('=') != std::string::npos && i > 0 &&
                      words.back() != "--param";
    words.push_back(pair ? "--" + word : word);
  }
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  return CommandLine(static_cast<int>(pointers.size()), pointers.data(), {"json", "no-values"}, {});
}

void check_names(const CommandLine& line, const Program& program) {
  std::vector<std::string> known = {"target", "schedule", "seed",      "order",
                                    "async",  "json",     "no-values", "tolerance"};
  for (const tl_param_info& p : parameters(program)) known.push_back(p.name);
  for (const auto& [name, value] : line.values())
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail_usage("--" + name + " is neither an option nor a parameter of the program");
}

}  // namespace

int check_command(int argc, char** argv) {
  const CommandLine line = parse(argc, argv);
  const auto orders = choices(line, "order", "round_robin", {"round_robin", "reversed", "random"});
  const auto asyncs = choices(line, "async", "latest", {"latest", "earliest"});
  const Context context = make_context();
  const Program program = read_program(context, line);
  check_names(line, program);
  const std::optional<double> tolerance = tolerance_of(line);
  const RunArguments given = make_arguments(program, line);
  RunArguments expected = given;
  if (!line.has("no-values")) {
    tl_error* error = nullptr;
    const std::vector<tl_arg> args = expected.launch_arguments();
    require(tl_interpret_launch(program.get(), quiet_launch(), args.data(), args.size(), &error), error,
            "interpreting");
  }
  std::vector<Run> runs;
  bool bad = false;
  for (const std::string& order : orders)
    for (const std::string& async : asyncs) {
      Run run{order, async, {}, {}};
      RunArguments arguments = given;
      launch(context, compile_for(context, program, line, run), arguments, run);
      for (size_t i = 0; i < arguments.tensors.size() && !line.has("no-values"); ++i)
        if (!agree(expected.tensors[i], arguments.tensors[i], tolerance))
          run.wrong.push_back(arguments.tensors[i].name);
      bad |= run.findings() > 0 || !run.wrong.empty();
      runs.push_back(std::move(run));
    }
  if (line.has("json")) {
    Json all;
    for (Run& run : runs) {
      Json& j = all["runs"].emplace_back();
      j["order"] = run.order, j["async"] = run.async, j["wrong_values"] = run.wrong;
      j["kernels"] = std::move(run.report["kernels"]);
    }
    std::printf("%s\n", all.dump(2).c_str());
    return bad ? 1 : 0;
  }
  for (const Run& run : runs) {
    std::printf("order %s, async %s: %zu %s\n", run.order.c_str(), run.async.c_str(), run.findings(),
                run.findings() == 1 ? "finding" : "findings");
    print_findings(run);
    for (const std::string& name : run.wrong) std::printf("%s differs from the interpreter\n", name.c_str());
  }
  print_counters(runs.front().report);
  return bad ? 1 : 0;
}

}  // namespace tool
