// What something takes of a multiprocessor: cycles of each of its pipes, if that pipe had nothing else to do,
// and bytes that cross its border. Of a block, unless said otherwise. Sums of works are the work of all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tilegen::cost {

// tensor: matrix units. issue: the schedulers' slots. plain: lanes for arithmetic. convert: lanes for
// conversions. special: lanes for exponentials, roots and quotients. shared: shared memory, by wavefronts.
// global: lines that loads and stores of threads ask the first cache for.
enum class Pipe : uint8_t { tensor, issue, plain, convert, special, shared, global };
inline constexpr size_t kPipes = 7;
const char* pipe_name(Pipe pipe);

struct Work {
  std::array<double, kPipes> cycles{};
  double read_bytes = 0, written_bytes = 0;  // of tensors, in whole sectors
  double filled_bytes = 0;    // of tiles outside of tensors, that the copy engine fills with zeros
  double repeated_bytes = 0;  // of tensors, that other blocks ask for at about the same time
  double l2_bytes = 0;        // the same as L2 serves them: parts of lines take longer than their bytes
  // Cycles that a warp waits for results of its own, however little others do: what nothing hides where the
  // block is alone and its warps meet.
  double latency = 0;

  double& operator[](Pipe pipe) { return cycles[static_cast<size_t>(pipe)]; }
  double operator[](Pipe pipe) const { return cycles[static_cast<size_t>(pipe)]; }
  Work& operator+=(const Work& more);
  Work& operator*=(double times);
  // The pipe that is busy longest, tensor units aside where `threads`.
  Pipe busiest(bool threads = false) const;
  double busy(bool threads = false) const { return (*this)[busiest(threads)]; }
};
inline Work operator+(Work a, const Work& b) { return a += b; }
inline Work operator*(Work a, double times) { return a *= times; }

}  // namespace tilegen::cost
