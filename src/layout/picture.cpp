#include "layout/picture.h"

#include <algorithm>
#include <functional>
#include <map>

#include "layout/bank_model.h"

namespace tilegen::layout {

namespace {

// What a picture shows of a map: the last two dimensions, at index 0 of the others, cut to a size.
struct Window {
  int rank = 0;
  int64_t rows = 1, columns = 1;              // of the tile
  int64_t shown_rows = 1, shown_columns = 1;  // of the picture

  Window(const std::vector<int64_t>& shape, int max_rows, int max_columns)
      : rank(static_cast<int>(shape.size())) {
    if (rank >= 1) columns = shape[rank - 1];
    if (rank >= 2) rows = shape[rank - 2];
    shown_rows = std::min<int64_t>(rows, std::max(max_rows, 1));
    shown_columns = std::min<int64_t>(columns, std::max(max_columns, 1));
  }
  std::vector<int64_t> index(int64_t row, int64_t column) const {
    std::vector<int64_t> at(rank, 0);
    if (rank >= 1) at[rank - 1] = column;
    if (rank >= 2) at[rank - 2] = row;
    return at;
  }
  // Empty when all of the tile is shown.
  std::string remark() const {
    std::string text;
    if (rank > 2) text += "the last two of " + std::to_string(rank) + " dimensions, at index 0 of the others";
    if (shown_rows < rows || shown_columns < columns)
      text += (text.empty() ? "" : "; ") + std::to_string(shown_rows) + " x " +
              std::to_string(shown_columns) + " of " + std::to_string(rows) + " x " + std::to_string(columns);
    return text;
  }
};

// A picture is of no target; the memories of all that there are have these.
constexpr BankModel kBanks{32, 4};

struct Cell {
  std::string text;
  int64_t group = 0;  // bank or thread: what the colour says
};
using CellOf = std::function<Cell(std::span<const int64_t> index)>;

CellOf layout_cells(const Layout& l) {
  return [&l](std::span<const int64_t> index) {
    const std::vector<int64_t> at = l.eval(index);
    Cell cell;
    for (size_t o = 0; o < at.size(); ++o) cell.text += (o ? "," : "") + std::to_string(at[o]);
    cell.group = at[0] * l.element_bytes() / kBanks.bank_bytes % kBanks.banks;
    return cell;
  };
}

CellOf fragment_cells(const Fragment& f) {
  return [&f](std::span<const int64_t> index) {
    const std::vector<int64_t> threads = f.holders(index);
    Cell cell{"T" + std::to_string(threads[0]) + ":R" + std::to_string(f.register_of(index)), threads[0]};
    if (threads.size() > 1) cell.text += "+" + std::to_string(threads.size() - 1);
    return cell;
  };
}

std::vector<std::vector<Cell>> collect(const Window& w, const CellOf& cell_of) {
  std::vector<std::vector<Cell>> cells(w.shown_rows);
  for (int64_t r = 0; r < w.shown_rows; ++r)
    for (int64_t c = 0; c < w.shown_columns; ++c) cells[r].push_back(cell_of(w.index(r, c)));
  return cells;
}

std::string right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

size_t widest(const std::vector<std::vector<Cell>>& cells) {
  size_t width = 1;
  for (const auto& row : cells)
    for (const Cell& cell : row) width = std::max(width, cell.text.size());
  return width;
}

std::string grid(const std::string& title, const Window& w, const CellOf& cell_of) {
  const auto cells = collect(w, cell_of);
  const size_t width = std::max(widest(cells), std::to_string(w.shown_columns - 1).size());
  const size_t margin = std::to_string(w.shown_rows - 1).size();
  std::string text = title + "\n" + std::string(margin, ' ') + " |";
  for (int64_t c = 0; c < w.shown_columns; ++c) text += " " + right(std::to_string(c), width);
  text += "\n" + std::string(margin, '-') + "-+" + std::string((width + 1) * w.shown_columns, '-') + "\n";
  for (int64_t r = 0; r < w.shown_rows; ++r) {
    text += right(std::to_string(r), margin) + " |";
    for (const Cell& cell : cells[r]) text += " " + right(cell.text, width);
    text += "\n";
  }
  const std::string remark = w.remark();
  return remark.empty() ? text : text + "(" + remark + ")\n";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// Neighbouring numbers get hues far apart (the golden angle).
std::string colour(int64_t group) {
  return "hsl(" + std::to_string(group * 137 % 360) + ",70%," + std::to_string(group / 360 % 2 ? 65 : 80) +
         "%)";
}

std::string svg_text(int64_t x, int64_t y, const char* anchor, const std::string& text) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" text-anchor=\"" + anchor +
         "\">" + escaped(text) + "</text>\n";
}

std::string svg_box(int64_t x, int64_t y, int64_t width, int64_t height, int64_t group) {
  return "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
         std::to_string(width) + "\" height=\"" + std::to_string(height) + "\" fill=\"" + colour(group) +
         "\" stroke=\"#888\"/>\n";
}

std::string svg(const std::string& title, const char* group_name, const Window& w, const CellOf& cell_of) {
  constexpr int64_t kHeight = 20, kLeft = 40, kTop = 50, kLegendWidth = 100;
  constexpr size_t kLegendColumns = 8, kLegendEntries = 64;
  const auto cells = collect(w, cell_of);
  const int64_t width = std::max<int64_t>(28, 7 * static_cast<int64_t>(widest(cells)) + 8);
  std::string body = svg_text(4, 16, "start", title);
  std::map<int64_t, bool> groups;
  for (int64_t c = 0; c < w.shown_columns; ++c)
    body += svg_text(kLeft + c * width + width / 2, kTop - 6, "middle", std::to_string(c));
  for (int64_t r = 0; r < w.shown_rows; ++r) {
    const int64_t y = kTop + r * kHeight;
    body += svg_text(kLeft - 6, y + 14, "end", std::to_string(r));
    for (int64_t c = 0; c < w.shown_columns; ++c) {
      const Cell& cell = cells[r][c];
      groups[cell.group] = true;
      body += svg_box(kLeft + c * width, y, width, kHeight, cell.group);
      body += svg_text(kLeft + c * width + width / 2, y + 14, "middle", cell.text);
    }
  }
  int64_t y = kTop + w.shown_rows * kHeight + 12;
  size_t entry = 0;
  for (const auto& [group, shown] : groups) {
    if (entry == kLegendEntries) break;
    const int64_t x = kLeft + static_cast<int64_t>(entry % kLegendColumns) * kLegendWidth;
    if (entry != 0 && entry % kLegendColumns == 0) y += kHeight;
    body +=
        svg_box(x, y, 14, 14, group) + svg_text(x + 20, y + 12, "start", group_name + std::to_string(group));
    ++entry;
  }
  y += kHeight;
  std::string remark = w.remark();
  if (entry < groups.size())
    remark += (remark.empty() ? "" : "; ") + std::to_string(groups.size() - entry) + " more colours";
  if (!remark.empty()) {
    body += svg_text(4, y + 14, "start", remark);
    y += kHeight;
  }
  const int64_t legend_columns = static_cast<int64_t>(std::min(groups.size(), kLegendColumns));
  const int64_t full_width = std::max({kLeft + w.shown_columns * width, kLeft + legend_columns * kLegendWidth,
                                       7 * static_cast<int64_t>(title.size()) + 8}) +
                             8;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(full_width) + "\" height=\"" +
         std::to_string(y + 8) + "\" font-family=\"monospace\" font-size=\"11\">\n" + body + "</svg>\n";
}

}  // namespace

std::string layout_grid(const Layout& l, int max_rows, int max_cols) {
  return grid(l.to_text(), Window(l.shape(), max_rows, max_cols), layout_cells(l));
}

std::string fragment_grid(const Fragment& f, int max_rows, int max_cols) {
  return grid(f.to_text(), Window(f.shape(), max_rows, max_cols), fragment_cells(f));
}

std::string layout_svg(const Layout& l, int max_rows, int max_cols) {
  return svg(l.to_text(), "bank ", Window(l.shape(), max_rows, max_cols), layout_cells(l));
}

std::string fragment_svg(const Fragment& f, int max_rows, int max_cols) {
  return svg(f.to_text(), "thread ", Window(f.shape(), max_rows, max_cols), fragment_cells(f));
}

}  // namespace tilegen::layout
