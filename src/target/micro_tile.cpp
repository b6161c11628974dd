#include "target/micro_tile.h"

namespace tilegen::target {

int64_t vector_lanes(const MicroKernelAtom& atom, int64_t nr) {
  int64_t lanes = atom.lanes;
  while (nr % lanes != 0) lanes /= 2;
  return lanes;
}

bool fits_registers(const MicroKernelAtom& atom, int64_t mr, int64_t nr) {
  int64_t vectors = nr / vector_lanes(atom, nr);
  return mr * vectors + vectors + 1 <= atom.registers;
}

std::optional<MicroTile> micro_tile_from_name(const Target& t, std::string_view name) {
  size_t colon = name.rfind(':'), x = name.rfind('x');
  if (colon == std::string_view::npos || x == std::string_view::npos || x < colon) return std::nullopt;
  auto parse = [](std::string_view s) -> int64_t {
    int64_t v = 0;
    if (s.empty() || s.size() > 4) return 0;
    for (char c : s) {
      if (c < '0' || c > '9') return 0;
      v = v * 10 + (c - '0');
    }
    return v;
  };
  int64_t mr = parse(name.substr(colon + 1, x - colon - 1)), nr = parse(name.substr(x + 1));
  if (mr < 1 || nr < 1) return std::nullopt;
  for (const MicroKernelAtom& atom : t.micro_kernels)
    if (atom.name == name.substr(0, colon) && fits_registers(atom, mr, nr)) return MicroTile{&atom, mr, nr};
  return std::nullopt;
}

}  // namespace tilegen::target
