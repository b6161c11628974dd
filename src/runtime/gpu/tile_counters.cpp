#include "runtime/gpu/tile_counters.h"

#include "thread/tile_counter_table.h"

namespace tilegen::runtime::gpu {
namespace {

constexpr size_t kStride = 32;  // bytes: counters of different streams lie in sectors of their own
constexpr size_t kBytes = TileCounters::kStreams * kStride + thread::kClaimTableBytes;
constexpr unsigned kNonBlocking = 1;
constexpr int kRelaxed = 2;  // of captures: this thread's calls are none of theirs
const auto kPerThreadStream = reinterpret_cast<Stream>(uintptr_t{2});

}  // namespace

std::unique_ptr<TileCounters> TileCounters::make(const Driver& driver, Result& result) {
  std::unique_ptr<TileCounters> counters(new TileCounters(driver));
  result = counters->allocate();
  return result == kSuccess ? std::move(counters) : nullptr;
}

TileCounters::~TileCounters() {
  if (memory_) driver_.api().memory_free(memory_);
}

Pointer TileCounters::table() const { return (memory_ + kStreams * kStride) | thread::kClaimTableTag; }

// Keys of numbered streams are odd, that of the context's default stream is not; 0 is none.
constexpr uint64_t kDefaultStreamKey = 2;

// Where the driver does not number streams, one that is destroyed and made again may have the handle of
// another.
uint64_t TileCounters::key_of(Stream stream) const {
  unsigned long long id = 0;
  if (driver_.api().stream_id && driver_.api().stream_id(stream, &id) == kSuccess)
    return 2 * uint64_t{id} + 1;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const char own = 0;
  const uint64_t thread =
      stream == kPerThreadStream ? reinterpret_cast<uintptr_t>(&own) * 0x9e3779b97f4a7c15u : 0;
  return 2 * (reinterpret_cast<uintptr_t>(stream) + thread) + 1;
}

Pointer TileCounters::of_launch(Stream stream) {
  int capturing = 0;
  const auto asks = driver_.api().stream_capturing;
  // The default stream is never captured, and lives as long as its context.
  if (stream && asks && (asks(stream, &capturing) != kSuccess || capturing != 0)) return table();
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
Result TileCounters::allocate() {
  const Entries& api = driver_.api();
  int mode = kRelaxed;
  Result result = api.capture_mode(&mode);
  if (result != kSuccess) return result;
  Stream stream = nullptr;
  result = api.memory_allocate(&memory_, kBytes);
  if (result != kSuccess) memory_ = 0;
  if (result == kSuccess) result = api.stream_create(&stream, kNonBlocking);
  if (result == kSuccess) {
    result = api.memory_set(memory_, 0, kBytes, stream);
    if (result == kSuccess) result = api.stream_wait(stream);
    api.stream_destroy(stream);
  }
  const Result back = api.capture_mode(&mode);
  return result == kSuccess ? back : result;
}

}  // namespace tilegen::runtime::gpu
