// Layouts of a schedule, listed from its JSON form.
#pragma once

#include <string>

namespace tool {

// One line per value, op and conversion that has a layout. With a folder, a picture of each goes there.
std::string list_layouts(const std::string& schedule_json, const std::string& svg_folder);

}  // namespace tool
