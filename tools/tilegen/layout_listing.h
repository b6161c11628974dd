// Layouts of a schedule, listed from its JSON form.
#pragma once

#include <string>

namespace tool {

// One line per value, op and conversion that has a layout; with `pictures` a grid of cells below each.
std::string list_layouts(const std::string& schedule_json, bool pictures);

// One SVG per layout in `folder`, which must exist; the number written.
int write_pictures(const std::string& schedule_json, const std::string& folder);

}  // namespace tool
