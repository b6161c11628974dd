#include "measure.h"

#include <sched.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <tilelang.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "files.h"
#include "library.h"

namespace bench {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Samples::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  if (sorted.empty()) return 0;
  return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

Json Samples::to_json() const {
  Json out;
  out["median_s"] = median();
  out["minimum_s"] = *std::min_element(seconds.begin(), seconds.end());
  out["maximum_s"] = *std::max_element(seconds.begin(), seconds.end());
  out["samples_s"] = seconds;
  return out;
}

namespace {

double processor_time() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

std::vector<Samples> side_by_side(const std::vector<std::function<void()>>& subjects, int rounds,
                                  double seconds, int least) {
  std::vector<Samples> out(subjects.size());
  double (*const clock)() = cores() == 1 ? processor_time : now;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < subjects.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      subjects[i]();
      const double begin = now();
      for (int taken = 0; taken < least || now() - begin < seconds; ++taken) {
        const double start = clock();
        subjects[i]();
        out[i].seconds.push_back(clock() - start);
      }
    }
  return out;
}

int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

namespace {

std::string cpu_field(const std::string& field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, field.size(), field) == 0) {
      const size_t colon = line.find(':');
      if (colon != std::string::npos) return line.substr(std::min(colon + 2, line.size()));
    }
  return "";
}

}  // namespace

Json machine() {
  utsname system{};
  uname(&system);
  Json out;
  out["processor"] = cpu_field("model name");
  out["family"] = cpu_field("cpu family");
  out["model"] = cpu_field("model\t");
  std::istringstream flags(cpu_field("flags"));
  Json vector_features = Json::array();
  for (std::string flag; flags >> flag;)
    if (flag == "fma" || flag.compare(0, 3, "avx") == 0 || flag.compare(0, 3, "amx") == 0)
      vector_features.push_back(flag);
  out["features"] = vector_features;
  out["cores"] = cores();
  out["kernel"] = std::string(system.sysname) + " " + system.release;
  out["compiler"] = __VERSION__;
  const Json library = Json::parse(tl_build_info(), nullptr, false);
  out["tilegen"] = library.is_discarded() ? Json(tl_build_info()) : library;
  tl_device_info device{};
  device.struct_size = sizeof device;
  if (tl_device_describe(0, &device) == TL_OK) out["device"] = device.name;
  return out;
}

Resident resident() {
  Resident out;
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word == "VmRSS:" && file >> out.all) out.all *= 1024;
    if (word == "RssAnon:" && file >> out.anonymous) out.anonymous *= 1024;
  }
  return out;
}

std::string run_self(const std::string& argument, const std::string& variable, const std::string& value) {
  int ends[2];
  if (pipe(ends) != 0) tool::fail("no pipe");
  const pid_t child = fork();
  if (child < 0) tool::fail("no process");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (!variable.empty()) setenv(variable.c_str(), value.c_str(), 1);
    execl("/proc/self/exe", "bench", argument.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) tool::fail("a run with " + argument + " (" + variable + "=" + value + ") failed");
  return out;
}

void write_results(const std::string& path, const Json& results) {
  char date[32];
  const std::time_t time = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&time));
  Json out;
  out["date"] = date;
  out["machine"] = machine();
  for (const auto& [key, value] : results.items()) out[key] = value;
  tool::write_file(path, out.dump(1) + "\n");
}

}  // namespace bench
