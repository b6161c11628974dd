#include "runtime/cuda/tile_counters.h"

#include "thread/tile_counter_table.h"

namespace tilegen::runtime::cuda {
namespace {

constexpr size_t kStride = 32;  // bytes: counters of different streams lie in sectors of their own
constexpr size_t kBytes = TileCounters::kStreams * kStride + thread::kClaimTableBytes;
constexpr unsigned kNonBlocking = 1;
constexpr int kRelaxed = 2;  // of captures: this thread's calls are none of theirs
const auto kPerThreadStream = reinterpret_cast<CuStream>(uintptr_t{2});

}  // namespace

std::unique_ptr<TileCounters> TileCounters::make(const Driver& driver, CuResult& result) {
  std::unique_ptr<TileCounters> counters(new TileCounters(driver));
  result = counters->allocate();
  return result == kCuSuccess ? std::move(counters) : nullptr;
}

TileCounters::~TileCounters() {
  if (memory_) driver_.api().memory_free(memory_);
}

CuPointer TileCounters::table() const { return (memory_ + kStreams * kStride) | thread::kClaimTableTag; }

// Keys of numbered streams are odd, that of the context's default stream is not; 0 is none.
constexpr uint64_t kDefaultStreamKey = 2;

// Where the driver does not number streams, one that is destroyed and made again may have the handle of
// another.
uint64_t TileCounters::key_of(CuStream stream) const {
  unsigned long long id = 0;
  if (driver_.api().stream_id && driver_.api().stream_id(stream, &id) == kCuSuccess)
    return 2 * uint64_t{id} + 1;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const char own = 0;
  const uint64_t thread =
      stream == kPerThreadStream ? reinterpret_cast<uintptr_t>(&own) * 0x9e3779b97f4a7c15u : 0;
  return 2 * (reinterpret_cast<uintptr_t>(stream) + thread) + 1;
}

CuPointer TileCounters::of_launch(CuStream stream) {
  int capturing = 0;
  const auto asks = driver_.api().stream_capturing;
  // The default stream is never captured, and lives as long as its context.
  if (stream && asks && (asks(stream, &capturing) != kCuSuccess || capturing != 0)) return table();
  const uint64_t key = stream ? key_of(stream) : kDefaultStreamKey;
  constexpr size_t kTries = 32;
  size_t at = (key * 0x9e3779b97f4a7c15u) >> 32;
  for (size_t i = 0; i < kTries; ++i, ++at) {
    std::atomic<uint64_t>& place = streams_[at % kStreams];
    uint64_t held = place.load(std::memory_order_relaxed);
    if (held == 0 && place.compare_exchange_strong(held, key, std::memory_order_relaxed)) held = key;
    if (held == key) return memory_ + at % kStreams * kStride;
  }
  return table();
}

// Also inside a capture: the work is on a stream of its own, and done when this returns.
CuResult TileCounters::allocate() {
  const Entries& api = driver_.api();
  int mode = kRelaxed;
  CuResult result = api.capture_mode(&mode);
  if (result != kCuSuccess) return result;
  CuStream stream = nullptr;
  result = api.memory_allocate(&memory_, kBytes);
  if (result != kCuSuccess) memory_ = 0;
  if (result == kCuSuccess) result = api.stream_create(&stream, kNonBlocking);
  if (result == kCuSuccess) {
    result = api.memory_set(memory_, 0, kBytes, stream);
    if (result == kCuSuccess) result = api.stream_wait(stream);
    api.stream_destroy(stream);
  }
  const CuResult back = api.capture_mode(&mode);
  return result == kCuSuccess ? back : result;
}

}  // namespace tilegen::runtime::cuda
