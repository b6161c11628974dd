#include "target/micro_tile.h"

#include <algorithm>

namespace tilegen::target {

int64_t vector_lanes(const MicroKernelAtom& atom, int64_t nr) {
  int64_t lanes = atom.lanes;
  while (nr % lanes != 0) lanes /= 2;
  return lanes;
}

std::optional<MatrixTiles> matrix_tiles(const MicroKernelAtom& atom, int64_t mr, int64_t nr, int64_t k) {
  if (atom.tile_rows == 0 || k % atom.pack != 0) return std::nullopt;
  const int64_t most = atom.tile_rows;
  MatrixTiles t;
  t.down = (mr + most - 1) / most;
  t.across = (nr + most - 1) / most;
  if (mr % t.down != 0 || nr % t.across != 0) return std::nullopt;
  // C, a row of registers of B and one of A.
  if (t.down * t.across + t.across + 1 > atom.registers) return std::nullopt;
  t.rows = mr / t.down;
  t.columns = nr / t.across;
  for (t.k = std::min<int64_t>(atom.tile_k, k); k % t.k != 0 || t.k % atom.pack != 0;) --t.k;
  return t;
}

bool fits_registers(const MicroKernelAtom& atom, int64_t mr, int64_t nr) {
  if (atom.tile_rows > 0) return matrix_tiles(atom, mr, nr, atom.tile_k).has_value();
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
