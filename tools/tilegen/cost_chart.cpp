#include "cost_chart.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "files.h"

namespace tool {

namespace {

constexpr int kWidth = 640, kLeft = 150, kBar = 400, kRow = 24, kTop = 48;

std::string text_at(int x, int y, const char* style, const std::string& words) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" " + style + ">" + words +
         "</text>\n";
}

std::string chart(const nlohmann::ordered_json& kernel) {
  const auto& busy = kernel["busy"];
  const int height = kTop + kRow * static_cast<int>(busy.size()) + 16;
  char title[256];
  std::snprintf(title, sizeof title, "%s: %.1f us, bound by %s", kernel["kernel"].get<std::string>().c_str(),
                kernel["us"].get<double>(), kernel["bound"].get<std::string>().c_str());
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) +
                    "\" height=\"" + std::to_string(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
                    "fill=\"white\"/>\n";
  svg += text_at(16, 26, "font-size=\"14\" font-weight=\"bold\"", title);
  int y = kTop;
  for (const auto& [pipe, value] : busy.items()) {
    const double share = std::clamp(value.get<double>(), 0.0, 1.0);
    svg += text_at(kLeft - 8, y + 15, "text-anchor=\"end\"", pipe);
    svg += "<rect x=\"" + std::to_string(kLeft) + "\" y=\"" + std::to_string(y + 3) + "\" width=\"" +
           std::to_string(kBar) + "\" height=\"16\" fill=\"#eeeeee\"/>\n";
    svg += "<rect x=\"" + std::to_string(kLeft) + "\" y=\"" + std::to_string(y + 3) + "\" width=\"" +
           std::to_string(std::lround(share * kBar)) + "\" height=\"16\" fill=\"#3b6ea5\"/>\n";
    svg +=
        text_at(kLeft + kBar + 8, y + 15, "", std::to_string(std::lround(100 * value.get<double>())) + " %");
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace

void print_warnings(const Artifact& artifact, std::FILE* out) {
  for (size_t i = 0; i < tl_artifact_warning_count(artifact.get()); ++i) {
    tl_diagnostic d{};
    d.struct_size = sizeof d;
    require(tl_artifact_warning(artifact.get(), i, &d, nullptr), nullptr, "reading the warnings");
    std::fprintf(out, "%s%s:%u:%u: warning [%s] %s: %s (%s)\n", i == 0 ? "\n" : "", d.file, d.line, d.column,
                 d.code, d.op, d.message, d.hint);
  }
}

int write_cost_charts(const std::string& cost_json, const std::string& folder) {
  const auto cost = nlohmann::ordered_json::parse(cost_json);
  int count = 0;
  for (const auto& kernel : cost["kernels"])
    write_file(
        folder + "/" + std::to_string(count++) + "." + kernel["kernel"].get<std::string>() + ".cost.svg",
        chart(kernel));
  return count;
}

}  // namespace tool
