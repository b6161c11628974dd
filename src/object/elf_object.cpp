#include "object/elf_object.h"

#include <string>

#include "support/diag_codes.h"

namespace tilegen::object {

namespace {

Error refused(const std::string& what) {
  return Error(DiagCode::backend_failure, {}, "an object file cannot be read: " + what,
               "report it with the program text");
}

// The bytes [offset, offset + size), if the file has them.
bool slice(std::string_view bytes, uint64_t offset, uint64_t size, std::string_view& out) {
  if (offset > bytes.size() || size > bytes.size() - offset) return false;
  out = bytes.substr(offset, size);
  return true;
}

std::string_view text_at(std::string_view strings, uint64_t offset) {
  if (offset >= strings.size()) return {};
  const std::string_view rest = strings.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

Checked read_sections(std::string_view bytes, ElfFile& file) {
  std::string_view table;
  const Elf64_Ehdr& h = file.header;
  if (h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shstrndx >= h.e_shnum ||
      !slice(bytes, h.e_shoff, uint64_t{h.e_shnum} * sizeof(Elf64_Shdr), table))
    return refused("its table of sections is not whole");
  for (const Elf64_Shdr& header : rows_of<Elf64_Shdr>(table)) {
    ElfSection s;
    s.header = header;
    if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL &&
        !slice(bytes, header.sh_offset, header.sh_size, s.bytes))
      return refused("a section ends behind the file");
    file.sections.push_back(s);
  }
  const std::string_view names = file.sections[h.e_shstrndx].bytes;
  for (ElfSection& s : file.sections) s.name = text_at(names, s.header.sh_name);
  return Unit{};
}

}  // namespace

Expected<ElfFile> read_elf(std::string_view bytes, uint16_t machine, uint32_t table) {
  ElfFile file;
  if (bytes.size() < sizeof file.header) return refused("it is shorter than its header");
  std::memcpy(&file.header, bytes.data(), sizeof file.header);
  const Elf64_Ehdr& h = file.header;
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
      h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_machine != machine)
    return refused("it is no ELF64 file of machine " + std::to_string(machine));
  if (Checked read = read_sections(bytes, file); !read) return read.error();
  for (const ElfSection& s : file.sections) {
    if (s.header.sh_type != table) continue;
    if (s.header.sh_link >= file.sections.size()) return refused("symbols without names");
    const std::string_view names = file.sections[s.header.sh_link].bytes;
    for (const Elf64_Sym& entry : rows_of<Elf64_Sym>(s.bytes))
      file.symbols.push_back({entry, text_at(names, entry.st_name)});
    break;
  }
  return file;
}

}  // namespace tilegen::object
