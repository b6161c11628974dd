// Keys and names of earlier schedules: what reads JSON refuses them with those of today.
#pragma once

#include <string>

#include "support/json.h"

namespace tilegen::plan {

struct Renamed {
  const char *earlier, *today;
};
inline constexpr Renamed kRenamedKeys[] = {
    {"joined_behind", "deferred_to"},
    {"unless_one", "skip_if_identity"},
    {"pass_columns", "epilogue_columns"},
    {"skips_idle", "skip_empty_tiles"},
    {"rising", "increasing"},
    {"group_trips", "group_iterations"},
    {"channels", "pipelines"},
    {"producer_threads", "warps"},
    {"producer_registers", "registers"},
    {"consumer_registers", "registers"},
};
inline constexpr Renamed kRenamedNames[] = {{"longest_first", "lpt"}, {"claimed", "dynamic"}};

// Refuses the first key of the object that has another name today.
inline bool has_earlier_keys(const JsonCursor& object) {
  for (const Renamed& r : kRenamedKeys)
    if (const JsonCursor field = object.optional(r.earlier)) {
      field.refuse_with(std::string("the key \"") + r.earlier + "\" is called \"" + r.today + "\"",
                        "rename the key, or plan the program anew");
      return true;
    }
  return false;
}

inline bool is_earlier_name(const JsonCursor& name) {
  for (const Renamed& r : kRenamedNames)
    if (name.shown() == '"' + std::string(r.earlier) + '"') {
      name.refuse_with(name.shown() + " is called \"" + r.today + '"',
                       "use that name, or plan the program anew");
      return true;
    }
  return false;
}

}  // namespace tilegen::plan
