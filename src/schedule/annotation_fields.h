// Fields of a schedule's entries by their names, as annotations say them.
#pragma once

#include <algorithm>
#include <charconv>

#include "ir/annotations.h"
#include "plan/schedule_fields.h"

namespace tilegen::schedule {

using ir::Annotation;

inline int64_t number_of(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// A field of the entry that has the annotation's name.
template <class E>
struct FieldSetter {
  E& entry;
  const Annotation& a;
  bool& set;

  template <class F>
  void operator()(const F& f) const {
    if (a.key == f.key) take(f);
  }
  void take(const plan::NumberField<E>& f) const { entry.*f.at = number_of(a.values.front()), set = true; }
  void take(const plan::FlagField<E>& f) const { entry.*f.at = a.values.front() == "true", set = true; }
  void take(const plan::TextField<E>& f) const { entry.*f.at = a.values.front(), set = true; }
  template <size_t N>
  void take(const plan::WordField<E, N>& f) const {
    entry.*f.at = a.values.front(), set = true;
  }
  void take(const plan::EngineField<E>& f) const {
    for (int e = 0; e <= static_cast<int>(plan::Engine::register_copy); ++e)
      if (a.values.front() == plan::engine_name(static_cast<plan::Engine>(e)))
        entry.*f.at = static_cast<plan::Engine>(e), set = true;
  }
  template <class F>
  void take(const F&) const {}
};

template <class E>
bool set_field(E& entry, const Annotation& a) {
  bool set = false;
  plan::for_each_field<E>(FieldSetter<E>{entry, a, set});
  return set;
}

// The entry has decided the field.
template <class E>
bool says(const E& entry, const std::string& key) {
  E open, other;
  bool decided = false;
  plan::for_each_field<E>([&](const auto& f) {
    if (key == f.key) {
      other.*f.at = entry.*f.at;
      decided = !(other == open);
    }
  });
  return decided;
}

template <class E>
E& entry_of(std::vector<E>& list, std::string E::*name, const std::string& path) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const E& e) { return e.*name == path; });
  if (it != list.end()) return *it;
  list.emplace_back().*name = path;
  return list.back();
}

}  // namespace tilegen::schedule
