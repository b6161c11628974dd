#include "support/included_place.h"

namespace tilegen {
namespace {

// Where the places begin that stand behind the first `count`.
size_t end_of_places(std::string_view places, size_t count) {
  size_t at = 0;
  for (; count > 0 && at != std::string_view::npos; --count) at = places.find(", ", at == 0 ? 0 : at + 2);
  return at;
}

}  // namespace

std::string included_file(std::string_view name, const SourceLocation& at) {
  std::string file(name);
  file += '\0';
  file += place_text(at);
  const std::string_view around = included_at(at);
  if (around.empty()) return file;
  const size_t end = end_of_places(around, kShownPlaces - 1);
  file += ", ";
  file += around.substr(0, end);
  if (end != std::string_view::npos) file += ", ...";
  return file;
}

std::string_view file_name(const SourceLocation& at) {
  return std::string_view(at.file).substr(0, at.file.find('\0'));
}

std::string_view included_at(const SourceLocation& at) {
  const size_t end = at.file.find('\0');
  return end == std::string::npos ? std::string_view() : std::string_view(at.file).substr(end + 1);
}

std::string place_text(const SourceLocation& at) {
  std::string text(file_name(at));
  if (!text.empty()) text += ":";
  text += std::to_string(at.line);
  if (at.column != 0) text += ":" + std::to_string(at.column);
  return text;
}

}  // namespace tilegen
