// Fragment: a Layout onto (thread, register), with replica digits on the thread side (paper section 4.1,
// figure 6). Threads are numbered within the role that holds the tile. The domain `threads()` may be larger
// than what the digits reach; threads beyond hold nothing.
#pragma once

#include "layout/layout.h"

namespace tilegen::layout {

constexpr int kThread = 0;
constexpr int kRegister = 1;

class Fragment {
 public:
  Fragment() = default;
  // `map` has two outputs; replica digits add to kThread only (those of stride 0 are dropped). Refuses maps
  // that put two elements of one thread into one register unless a stride-0 digit says so; padding counts as
  // elements here, so that writes to it are harmless.
  static Expected<Fragment> make(Layout map, int64_t threads);
  // Every thread holds the whole tile: registers row-major, one replica digit of extent `threads`.
  static Fragment replicated(std::span<const int64_t> shape, int64_t threads);
  // One thread holds the whole tile under an injective memory layout without swizzle (the host's form).
  static Fragment single_thread(const Layout& registers);
  // Row-major over threads with `vector` consecutive elements of the last dimension per thread, repeated over
  // registers until the tile is covered. The free choice for element-wise loops. Any shape: the thread count
  // is split into factors from the last dimension outwards, padding where extents do not divide; of the
  // splits within a quarter of the fewest registers the one with most threads along the last dimensions is
  // taken. Threads left over hold copies.
  static Fragment row_major_vectors(std::span<const int64_t> shape, int64_t threads, int64_t vector);

  const Layout& map() const { return map_; }
  const std::vector<int64_t>& shape() const { return map_.shape(); }
  int rank() const { return map_.rank(); }
  int64_t threads() const { return threads_; }
  int64_t registers() const { return map_.output_extent(kRegister); }
  int64_t replicas() const { return map_.replicas(); }

  // The paper's four primitives. Multipliers are per dimension; the new digits are the most significant of
  // each dimension; `dim_order` lists every dimension from the fastest growing to the slowest. A dimension
  // that is padded cannot be repeated (multiplier 1).
  Fragment repeat(std::span<const int64_t> multipliers, std::span<const int> dim_order) const;  // registers
  Fragment repeat_on_thread(std::span<const int64_t> multipliers,
                            std::span<const int> dim_order) const;  // threads
  Fragment replicate(int64_t copies) const;                         // threads

  // Layout of a value broadcast from or reduced over `axis`: thread digits of the axis become replica digits,
  // its register digits disappear and the remaining register strides are compacted. The dimension is removed,
  // or kept with extent 1.
  Fragment reduce(int axis, bool keep_dim) const;
  // The reverse use: which iteration fragments fit is decided by `covers`. Exact for any radices and padding.
  // True when every (thread) that holds element e of `other` under `index_map` also holds it here: other's
  // iteration point i reads element index_map(i) where index_map[k] names other's dimension or kBroadcast.
  bool covers(const Fragment& other, std::span<const int> index_map) const;

  // Threads that hold an element, ascending; and the register it has there.
  std::vector<int64_t> holders(std::span<const int64_t> index) const;
  int64_t register_of(std::span<const int64_t> index) const;

  // Equal canonical forms: the same holders and registers for every point of the padded box.
  Fragment canonical() const;
  bool equivalent(const Fragment& other) const;
  std::string to_text() const;  // "threads 128 : (64,64) -> [0: ...; 1: ...; r: ...]"
  static Expected<Fragment> from_text(std::string_view text);
  bool operator==(const Fragment&) const = default;

 private:
  Layout map_;
  int64_t threads_ = 1;
};

constexpr int kBroadcast = -2;

// How a value held in one way is turned into one held in another (same shape).
enum class ConversionKind : uint8_t {
  none,              // every thread has what it needs, in the same registers
  register_permute,  // every thread has what it needs, in other registers
  shuffle,           // what a thread needs is held by lanes of its own warp
  shared_bounce      // through shared memory
};
const char* conversion_name(ConversionKind k);
// Every element has the same register in both.
bool same_registers(const Fragment& a, const Fragment& b);

}  // namespace tilegen::layout
