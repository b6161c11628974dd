#include "capi/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace tilegen::capi {
namespace {

struct Search {
  uintptr_t inside;  // an address of the object looked for
  std::string id;
};

void read_notes(const char* at, size_t size, std::string& id) {
  auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t all = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (all > size) return;
    const char* name = at + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      static constexpr char kHex[] = "0123456789abcdef";
      const auto* bytes = reinterpret_cast<const unsigned char*>(name + padded(note.n_namesz));
      for (size_t i = 0; i < note.n_descsz; ++i) {
        id += kHex[bytes[i] >> 4];
        id += kHex[bytes[i] & 15];
      }
      return;
    }
    at += all;
    size -= all;
  }
}

int visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    ours |= header.p_type == PT_LOAD && search->inside >= start && search->inside < start + header.p_memsz;
  }
  if (!ours) return 0;
  for (int i = 0; i < info->dlpi_phnum && search->id.empty(); ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_NOTE)
      read_notes(reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr), header.p_memsz, search->id);
  }
  return 1;
}

}  // namespace

std::string build_id() {
  Search search{reinterpret_cast<uintptr_t>(&build_id), {}};
  dl_iterate_phdr(visit, &search);
  return search.id;
}

}  // namespace tilegen::capi
