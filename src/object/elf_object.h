// Reading ELF64 files: sections and symbols, with every offset checked against the bytes that there are.
#pragma once

#include <elf.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tilegen::object {

struct ElfSection {
  Elf64_Shdr header{};
  std::string_view name, bytes;  // no bytes of SHT_NOBITS
};

struct ElfSymbol {
  Elf64_Sym entry{};
  std::string_view name;
};

struct ElfFile {
  Elf64_Ehdr header{};
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;  // of the table of type `table`; as numbered there
};

// `table`: SHT_SYMTAB or SHT_DYNSYM. Refuses (backend_failure) what is no little-endian ELF64 file of machine
// `machine`, or ends early. The views are into `bytes`.
Expected<ElfFile> read_elf(std::string_view bytes, uint16_t machine, uint32_t table);

// The rows of a table in a section.
template <class Row>
std::vector<Row> rows_of(std::string_view bytes) {
  std::vector<Row> rows(bytes.size() / sizeof(Row));
  if (!rows.empty()) std::memcpy(rows.data(), bytes.data(), rows.size() * sizeof(Row));
  return rows;
}

}  // namespace tilegen::object
