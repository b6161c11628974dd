#include "cost/work.h"

namespace tilegen::cost {

const char* pipe_name(Pipe pipe) {
  switch (pipe) {
    case Pipe::tensor:
      return "tensor";
    case Pipe::issue:
      return "issue";
    case Pipe::plain:
      return "arithmetic";
    case Pipe::convert:
      return "conversions";
    case Pipe::special:
      return "functions";
    case Pipe::shared:
      return "shared memory";
    case Pipe::global:
      return "loads and stores";
  }
  return "";
}

Work& Work::operator+=(const Work& more) {
  for (size_t i = 0; i < kPipes; ++i) cycles[i] += more.cycles[i];
  read_bytes += more.read_bytes;
  written_bytes += more.written_bytes;
  filled_bytes += more.filled_bytes;
  repeated_bytes += more.repeated_bytes;
  l2_bytes += more.l2_bytes;
  latency += more.latency;
  return *this;
}

Work& Work::operator*=(double times) {
  for (double& c : cycles) c *= times;
  read_bytes *= times;
  written_bytes *= times;
  filled_bytes *= times;
  repeated_bytes *= times;
  l2_bytes *= times;
  latency *= times;
  return *this;
}

Pipe Work::busiest(bool threads) const {
  size_t best = threads ? 1 : 0;
  for (size_t i = best + 1; i < kPipes; ++i)
    if (cycles[i] > cycles[best]) best = i;
  return static_cast<Pipe>(best);
}

}  // namespace tilegen::cost
