#include "runtime/cuda/claim_counters.h"

namespace tilegen::runtime::cuda {
namespace {

constexpr size_t kStride = 32;  // bytes: counters of different launches lie in sectors of their own
constexpr size_t kSlabBytes = 4096 * kStride;
constexpr unsigned kNonBlocking = 1;
constexpr int kRelaxed = 2;  // of captures: this thread's calls are none of theirs
const auto kPerThreadStream = reinterpret_cast<CuStream>(uintptr_t{2});

static_assert(ClaimCounters::kStreams * kStride < kSlabBytes);

}  // namespace

std::unique_ptr<ClaimCounters> ClaimCounters::make(const Driver& driver, CuResult& result) {
  std::unique_ptr<ClaimCounters> counters(new ClaimCounters(driver));
  result = counters->grow();
  if (result != kCuSuccess) return nullptr;
  counters->first_ = counters->next_;
  counters->next_ += kStreams * kStride;
  return counters;
}

ClaimCounters::~ClaimCounters() {
  for (CuPointer slab : slabs_) driver_.api().memory_free(slab);
}

// Keys of numbered streams are odd, that of the context's default stream is not; 0 is none.
constexpr uint64_t kDefaultStreamKey = 2;

// Where the driver does not number streams, one that is destroyed and made again may have the handle of another.
uint64_t ClaimCounters::key_of(CuStream stream) const {
  unsigned long long id = 0;
  if (driver_.api().stream_id && driver_.api().stream_id(stream, &id) == kCuSuccess) return 2 * uint64_t{id} + 1;
  static thread_local const char own = 0;
  const uint64_t thread = stream == kPerThreadStream ? reinterpret_cast<uintptr_t>(&own) * 0x9e3779b97f4a7c15u : 0;
  return 2 * (reinterpret_cast<uintptr_t>(stream) + thread) + 1;
}

CuResult ClaimCounters::of_launch(CuStream stream, CuPointer& counter) {
  int capturing = 0;
  const auto asks = driver_.api().stream_capturing;
  // The default stream is never captured, and lives as long as its context.
  if (stream && asks && asks(stream, &capturing) == kCuSuccess && capturing != 0) {
    std::lock_guard lock(mutex_);
    return fresh(counter);
  }
  const uint64_t key = stream ? key_of(stream) : kDefaultStreamKey;
  constexpr size_t kTries = 32;
  size_t at = (key * 0x9e3779b97f4a7c15u) >> 32;
  for (size_t i = 0; i < kTries; ++i, ++at) {
    std::atomic<uint64_t>& place = streams_[at % kStreams];
    uint64_t held = place.load(std::memory_order_relaxed);
    if (held == 0 && place.compare_exchange_strong(held, key, std::memory_order_relaxed)) held = key;
    if (held != key) continue;
    counter = first_ + at % kStreams * kStride;
    return kCuSuccess;
  }
  return of_rare_stream(key, counter);
}

[[gnu::cold]] CuResult ClaimCounters::of_rare_stream(uint64_t key, CuPointer& counter) {
  std::lock_guard lock(mutex_);
  if (const auto known = rare_.find(key); known != rare_.end()) {
    counter = known->second;
    return kCuSuccess;
  }
  const CuResult result = fresh(counter);
  if (result == kCuSuccess) rare_[key] = counter;
  return result;
}

CuResult ClaimCounters::fresh(CuPointer& counter) {
  if (next_ == end_)
    if (const CuResult result = grow(); result != kCuSuccess) return result;
  counter = next_;
  next_ += kStride;
  return kCuSuccess;
}

// Also inside a capture: the work is on a stream of its own, and done when this returns.
CuResult ClaimCounters::grow() {
  const Entries& api = driver_.api();
  int mode = kRelaxed;
  CuResult result = api.capture_mode(&mode);
  if (result != kCuSuccess) return result;
  CuPointer slab = 0;
  CuStream stream = nullptr;
  result = api.memory_allocate(&slab, kSlabBytes);
  const bool allocated = result == kCuSuccess;
  if (allocated) result = api.stream_create(&stream, kNonBlocking);
  if (result == kCuSuccess) {
    result = api.memory_set(slab, 0, kSlabBytes, stream);
    if (result == kCuSuccess) result = api.stream_wait(stream);
    api.stream_destroy(stream);
  }
  if (result == kCuSuccess) {
    slabs_.push_back(slab);
    next_ = slab;
    end_ = slab + kSlabBytes;
  } else if (allocated) {
    api.memory_free(slab);
  }
  const CuResult back = api.capture_mode(&mode);
  return result == kCuSuccess ? back : result;
}

}  // namespace tilegen::runtime::cuda
