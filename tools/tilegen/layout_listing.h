// Layouts of a schedule, listed from its JSON form.
#pragma once

#include <string>

namespace tool {

// One line per value, op and conversion that has a layout.
std::string list_layouts(const std::string& schedule_json);

}  // namespace tool
