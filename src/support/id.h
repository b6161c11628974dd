// Typed 32-bit indices into the arrays of an IR object. Cheap, copyable, stable under growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tilegen {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr bool valid() const { return value != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  constexpr size_t index() const { return value; }  // into an array that is not indexed by ids
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace tilegen

template <class Tag>
struct std::hash<tilegen::Id<Tag>> {
  size_t operator()(tilegen::Id<Tag> id) const noexcept { return std::hash<uint32_t>()(id.value); }
};
