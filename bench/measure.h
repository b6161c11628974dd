// Timing and recording of benchmarks; the method is described in docs/performance.md.
#pragma once

#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench {

using Json = nlohmann::ordered_json;

double now();  // seconds, monotonic

// Memory for data: aligned to a cache line, for us and for the yardstick alike.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const LineAllocator&) const = default;
};
template <class T>
using Array = std::vector<T, LineAllocator<T>>;

struct Samples {
  std::vector<double> seconds;
  double median() const;
  Json to_json() const;  // median, minimum, maximum and all samples
};

// Runs the subjects in turn, `rounds` times. One turn is an untimed call and then timed calls for `seconds`
// (at least `least`). Between turns the machine rests, so that idle threads of one subject's pool have
// stopped spinning before the other is timed. A process that may use one core only is timed by the processor
// time that it takes, which others on the machine do not lengthen.
std::vector<Samples> side_by_side(const std::vector<std::function<void()>>& subjects, int rounds = 7,
                                  double seconds = 0.08, int least = 3);

// Processor, features, cores this process may use, kernel, compiler, and the library's own description.
Json machine();
int cores();

// Resident set of this process in bytes: all of it, and the part that belongs to no file.
struct Resident {
  int64_t all = 0, anonymous = 0;
};
Resident resident();

// Output of this program run again with one argument and one environment variable; ends the program when it
// fails.
std::string run_self(const std::string& argument, const std::string& variable, const std::string& value);

// Writes `results` after the machine's description to the file, indented.
void write_results(const std::string& path, const Json& results);

}  // namespace bench
