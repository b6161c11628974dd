// The kinds of fields that entries of a Schedule have: what a row of schedule_fields.h may be. `at` is the
// member. Whoever writes, reads or compares entries has a function for each.
#pragma once

#include <array>

#include "plan/schedule.h"

namespace tilegen::plan {

inline constexpr int64_t kMaxNumber = INT64_C(1) << 31;

// What an entry is known by: required, not empty, once in its list.
template <class E>
struct NameField {
  const char* key;
  std::string E::*at;
  const char* meaning;
};

// Required, may be empty.
template <class E>
struct RequiredText {
  const char* key;
  std::string E::*at;
  const char* meaning;
};

// Open when empty.
template <class E>
struct TextField {
  const char* key;
  std::string E::*at;
  const char* meaning;
  const char* shown = nullptr;
};

// A choice even when empty.
template <class E>
struct OptionalText {
  const char* key;
  std::optional<std::string> E::*at;
  const char* meaning;
  const char* shown = nullptr;
};

template <class E>
struct NumberField {
  const char* key;
  int64_t E::*at;
  int64_t least, most, open;
  const char* meaning;
  const char* shown = nullptr;
  int64_t neutral = 0;    // not shown up to this value
  bool required = false;  // `open` is then no value that an entry has
};

// `otherwise`: what happens where the planned entry has no such choice.
template <class E>
struct FlagField {
  const char* key;
  std::optional<bool> E::*at;
  const char* meaning;
  const char* shown = nullptr;
  bool otherwise = false;
};

// A flag that every entry has; `absent` is what it reads as.
template <class E>
struct SetFlag {
  const char* key;
  bool E::*at;
  bool absent;
  const char* meaning;
};

// One of `names`, open when empty.
template <class E, size_t N>
struct WordField {
  const char* key;
  std::string E::*at;
  std::array<const char*, N> names;
  const char* meaning;
  const char* shown = nullptr;
};

template <class E>
struct EngineField {
  const char* key;
  std::optional<Engine> E::*at;
  const char* meaning;
};
template <class E>
struct StorageField {
  const char* key;
  Storage E::*at;
  const char* meaning;
};
template <class E>
struct OriginField {
  const char* key;
  Origin E::*at;
  const char* meaning;
};
template <class E>
struct KindField {
  const char* key;
  layout::ConversionKind E::*at;
  const char* meaning;
};

// A layout::Layout or layout::Fragment in text form.
template <class E, class L>
struct LayoutField {
  const char* key;
  std::optional<L> E::*at;
  const char* meaning;
};
// Open when it has no dimension.
template <class E>
struct FragmentField {
  const char* key;
  layout::Fragment E::*at;
  const char* meaning;
};

// Names of other things; `required` lists have each once.
template <class E>
struct NamesField {
  const char* key;
  std::vector<std::string> E::*at;
  bool required;
  const char* meaning;
  const char* shown = nullptr;
};

template <class E>
struct StagesField {
  const char* key;
  std::vector<std::pair<std::string, int64_t>> E::*at;
  const char* meaning;
};

// For the reader; a given one is kept.
template <class E>
struct ReasonField {
  const char* key;
  std::string E::*at;
};

}  // namespace tilegen::plan
