// The object's sections are placed in segments, addresses follow, relocations are applied to the bytes:
//
//   object     .text .rela.text .note .rodata .rela.rodata .symtab .strtab
//   file       header, program headers
//     r        .note .dynsym .hash .dynstr .rodata      the descriptor's distance to its code is filled in
//     rx       .text                                    distances to constants are filled in
//     rw       .dynamic
//              .shstrtab, section headers
//
// Segments begin on pages of their own; a segment's place in the file is the same modulo the page.
#include "object/hsaco_linker.h"

#include <algorithm>
#include <array>
#include <optional>

#include "object/elf_object.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::object {

namespace {

constexpr uint16_t kAmdgpu = 224;  // EM_AMDGPU
constexpr uint64_t kPage = 4096;
// "Relocation Records" of the guide.
enum : uint32_t { kRel32 = 4, kRel64 = 5, kRel32Low = 10, kRel32High = 11 };

Error refused(const std::string& what) {
  return Error(DiagCode::backend_failure, {}, "the kernels' object cannot be linked: " + what,
               "compile with keep_ir to see the code handed to LLVM, and report it with the program text");
}

struct Section {
  std::string name, bytes;
  Elf64_Shdr header{};
  int from = -1;  // section of the object; -1: made here
};

class Linker {
 public:
  explicit Linker(ElfFile object) : object_(std::move(object)) {}

  Expected<std::string> run() {
    if (object_.header.e_type != ET_REL) return refused("it is no relocatable object");
    if (auto why = take_sections()) return *why;
    if (auto why = export_symbols()) return *why;
    place();
    fill_symbols();
    fill_dynamic();
    if (auto why = relocate()) return *why;
    return file();
  }

 private:
  enum Segment : size_t { kRead, kCode, kData, kSegments };

  Section& add(Segment segment, std::string name, uint32_t type, uint64_t flags, uint64_t align) {
    Section s;
    s.name = std::move(name);
    s.header.sh_type = type;
    s.header.sh_flags = flags;
    s.header.sh_addralign = std::max<uint64_t>(align, 1);
    segments_[segment].push_back(std::move(s));
    return segments_[segment].back();
  }

  // Notes first, and the tables of symbols behind them, as the loader reads these alone.
  std::optional<Error> take_sections() {
    const auto take = [&](Segment segment, size_t i) {
      const ElfSection& s = object_.sections[i];
      Section& made = add(segment, std::string(s.name), s.header.sh_type,
                          s.header.sh_flags & ~uint64_t{SHF_GROUP}, s.header.sh_addralign);
      made.header.sh_entsize = s.header.sh_entsize;
      made.bytes = s.bytes;
      made.from = static_cast<int>(i);
    };
    const auto each = [&](auto wanted) {
      for (size_t i = 0; i < object_.sections.size(); ++i)
        if (object_.sections[i].header.sh_flags & SHF_ALLOC && wanted(object_.sections[i].header)) return i;
      return size_t{0};
    };
    if (size_t written = each([](const Elf64_Shdr& h) { return (h.sh_flags & SHF_WRITE) && h.sh_size > 0; }))
      return refused("section '" + std::string(object_.sections[written].name) + "' is written to");
    for (size_t i = 0; i < object_.sections.size(); ++i)
      if (object_.sections[i].header.sh_flags & SHF_ALLOC && object_.sections[i].header.sh_type == SHT_NOTE)
        take(kRead, i);
    add(kRead, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 8).header.sh_entsize = sizeof(Elf64_Sym);
    add(kRead, ".hash", SHT_HASH, SHF_ALLOC, 4).header.sh_entsize = sizeof(Elf64_Word);
    add(kRead, ".dynstr", SHT_STRTAB, SHF_ALLOC, 1);
    for (size_t i = 0; i < object_.sections.size(); ++i) {
      const Elf64_Shdr& h = object_.sections[i].header;
      if (!(h.sh_flags & SHF_ALLOC) || h.sh_type != SHT_PROGBITS || h.sh_size == 0) continue;
      take(h.sh_flags & SHF_EXECINSTR ? kCode : kRead, i);
    }
    if (segments_[kCode].empty()) return refused("it has no code");
    add(kData, ".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 8).header.sh_entsize = sizeof(Elf64_Dyn);
    return std::nullopt;
  }

  Section& section(std::string_view name) {
    for (std::vector<Section>& s : segments_)
      for (Section& found : s)
        if (found.name == name) return found;
    return segments_[kRead].front();
  }
  const Section* placed(size_t from) const {
    for (const std::vector<Section>& s : segments_)
      for (const Section& found : s)
        if (found.from == static_cast<int>(from)) return &found;
    return nullptr;
  }

  static uint32_t hash_of(std::string_view name) {  // gABI, "Hash Table"
    uint32_t h = 0;
    for (char c : name) {
      h = (h << 4) + static_cast<unsigned char>(c);
      const uint32_t top = h & 0xf0000000;
      h = (h ^ (top >> 24)) & ~top;
    }
    return h;
  }

  std::optional<Error> export_symbols() {
    std::string names(1, '\0');
    exported_.assign(1, Elf64_Sym{});
    std::vector<uint32_t> hashes{0};
    for (const ElfSymbol& s : object_.symbols) {
      const unsigned char binding = ELF64_ST_BIND(s.entry.st_info);
      if (binding == STB_LOCAL) continue;
      if (s.entry.st_shndx == SHN_UNDEF) return refused("it needs symbol '" + std::string(s.name) + "'");
      const unsigned char visibility = ELF64_ST_VISIBILITY(s.entry.st_other);
      if (visibility == STV_HIDDEN || visibility == STV_INTERNAL || s.entry.st_shndx >= SHN_LORESERVE)
        continue;
      Elf64_Sym entry = s.entry;  // value and section follow when all is placed
      entry.st_name = static_cast<Elf64_Word>(names.size());
      names.append(s.name).push_back('\0');
      exported_.push_back(entry);
      hashes.push_back(hash_of(s.name));
    }
    section(".dynstr").bytes = std::move(names);
    section(".dynsym").bytes.resize(exported_.size() * sizeof(Elf64_Sym));
    std::vector<Elf64_Word> table(2 + 2 * exported_.size(), 0);  // as many buckets as symbols
    table[0] = table[1] = static_cast<Elf64_Word>(exported_.size());
    for (size_t i = 1; i < exported_.size(); ++i) {
      Elf64_Word& bucket = table[2 + hashes[i] % exported_.size()];
      table[2 + exported_.size() + i] = std::exchange(bucket, static_cast<Elf64_Word>(i));
    }
    section(".hash").bytes.assign(reinterpret_cast<const char*>(table.data()),
                                  table.size() * sizeof(Elf64_Word));
    section(".dynamic").bytes.resize(kDynamicRows * sizeof(Elf64_Dyn));
    return std::nullopt;
  }

  void place() {
    uint64_t offset = sizeof(Elf64_Ehdr) + kHeaders * sizeof(Elf64_Phdr), page = 0;
    uint32_t number = 1;
    for (std::vector<Section>& segment : segments_) {
      for (Section& s : segment) {
        offset = round_up(offset, s.header.sh_addralign);
        s.header.sh_offset = offset;
        s.header.sh_addr = offset + page;
        s.header.sh_size = s.bytes.size();
        offset += s.bytes.size();
        s.header.sh_info = number++;  // until it is written: its number
      }
      page += kPage;
    }
    end_ = offset;
  }
  static uint64_t round_up(uint64_t v, uint64_t unit) { return (v + unit - 1) / unit * unit; }

  void fill_symbols() {
    for (size_t i = 1; i < exported_.size(); ++i) {
      const Section* home = placed(exported_[i].st_shndx);
      if (!home) continue;
      exported_[i].st_value += home->header.sh_addr;
      exported_[i].st_shndx = static_cast<Elf64_Half>(home->header.sh_info);
    }
    section(".dynsym").bytes.assign(reinterpret_cast<const char*>(exported_.data()),
                                    exported_.size() * sizeof(Elf64_Sym));
  }

  void fill_dynamic() {
    const auto address = [&](const char* name) { return section(name).header.sh_addr; };
    const std::array<Elf64_Dyn, kDynamicRows> rows = {{{DT_SYMTAB, {address(".dynsym")}},
                                                       {DT_SYMENT, {sizeof(Elf64_Sym)}},
                                                       {DT_STRTAB, {address(".dynstr")}},
                                                       {DT_STRSZ, {section(".dynstr").bytes.size()}},
                                                       {DT_HASH, {address(".hash")}},
                                                       {DT_NULL, {0}}}};
    section(".dynamic").bytes.assign(reinterpret_cast<const char*>(rows.data()), sizeof rows);
  }

  std::optional<Error> relocate() {
    for (const ElfSection& table : object_.sections) {
      if (table.header.sh_type != SHT_RELA || !placed(table.header.sh_info)) continue;
      Section& target = const_cast<Section&>(*placed(table.header.sh_info));
      for (const Elf64_Rela& r : rows_of<Elf64_Rela>(table.bytes))
        if (auto why = apply(r, target)) return why;
    }
    return std::nullopt;
  }

  std::optional<Error> apply(const Elf64_Rela& r, Section& target) {
    const size_t symbol = ELF64_R_SYM(r.r_info);
    const uint32_t type = ELF64_R_TYPE(r.r_info);
    if (symbol >= object_.symbols.size()) return refused("a relocation names no symbol");
    const Section* home = placed(object_.symbols[symbol].entry.st_shndx);
    if (!home) return refused("a relocation reaches '" + std::string(object_.symbols[symbol].name) + "'");
    const uint64_t value = home->header.sh_addr + object_.symbols[symbol].entry.st_value +
                           static_cast<uint64_t>(r.r_addend) - (target.header.sh_addr + r.r_offset);
    const auto distance = static_cast<int64_t>(value);
    if (type == kRel32 && (distance < INT32_MIN || distance > INT32_MAX)) return refused("it is too large");
    if (type != kRel32 && type != kRel64 && type != kRel32Low && type != kRel32High)
      return refused("relocation " + std::to_string(type) + " of section '" + target.name +
                     "' is left to the loader");
    const uint64_t bits = type == kRel32High ? value >> 32 : value;
    const size_t width = type == kRel64 ? 8 : 4;
    if (r.r_offset > target.bytes.size() || target.bytes.size() - r.r_offset < width)
      return refused("a relocation lies behind section '" + target.name + "'");
    std::memcpy(target.bytes.data() + r.r_offset, &bits, width);
    return std::nullopt;
  }

  Elf64_Phdr load(const std::vector<Section>& sections, uint32_t flags, bool from_start = false) const {
    const uint64_t begin = from_start ? 0 : sections.front().header.sh_offset;
    const Section& last = sections.back();
    Elf64_Phdr p{};
    p.p_type = PT_LOAD;
    p.p_flags = flags;
    p.p_offset = begin;
    p.p_vaddr = p.p_paddr = from_start ? 0 : sections.front().header.sh_addr;
    p.p_filesz = p.p_memsz = last.header.sh_offset + last.bytes.size() - begin;
    p.p_align = kPage;
    return p;
  }
  static Elf64_Phdr only(const Section& s, uint32_t type, uint32_t flags) {
    return {type,           flags,          s.header.sh_offset,   s.header.sh_addr, s.header.sh_addr,
            s.bytes.size(), s.bytes.size(), s.header.sh_addralign};
  }

  std::array<Elf64_Phdr, 7> program_headers() {
    const Section& dynamic = section(".dynamic");
    Elf64_Phdr own{};
    own.p_type = PT_PHDR;
    own.p_flags = PF_R;
    own.p_offset = own.p_vaddr = own.p_paddr = sizeof(Elf64_Ehdr);
    own.p_filesz = own.p_memsz = kHeaders * sizeof(Elf64_Phdr);
    own.p_align = 8;
    Elf64_Phdr stack{};
    stack.p_type = PT_GNU_STACK;
    stack.p_flags = PF_R | PF_W;
    const Section& first = segments_[kRead].front();
    Elf64_Phdr note = only(first, PT_NOTE, PF_R);
    if (first.header.sh_type != SHT_NOTE) note.p_filesz = note.p_memsz = 0;
    return {own,
            load(segments_[kRead], PF_R, true),
            load(segments_[kCode], PF_R | PF_X),
            load(segments_[kData], PF_R | PF_W),
            only(dynamic, PT_DYNAMIC, PF_R | PF_W),
            stack,
            note};
  }

  std::string file() {
    std::string out(end_, '\0');
    std::string names(1, '\0');
    std::vector<Elf64_Shdr> headers(1);
    const auto number = [&](const char* name) { return section(name).header.sh_info; };
    const uint32_t strings = number(".dynstr"), symbols = number(".dynsym");
    for (const std::vector<Section>& segment : segments_)
      for (const Section& s : segment) {
        std::copy(s.bytes.begin(), s.bytes.end(), out.begin() + static_cast<ptrdiff_t>(s.header.sh_offset));
        Elf64_Shdr h = s.header;
        h.sh_name = static_cast<Elf64_Word>(names.size());
        names.append(s.name).push_back('\0');
        const bool table = h.sh_type == SHT_DYNSYM || h.sh_type == SHT_DYNAMIC;
        h.sh_link = table ? strings : h.sh_type == SHT_HASH ? symbols : 0;
        h.sh_info = h.sh_type == SHT_DYNSYM ? 1 : 0;  // the first that is not local
        headers.push_back(h);
      }
    Elf64_Shdr own{};
    own.sh_name = static_cast<Elf64_Word>(names.size());
    names.append(".shstrtab").push_back('\0');
    own.sh_type = SHT_STRTAB;
    own.sh_offset = out.size();
    own.sh_size = names.size();
    own.sh_addralign = 1;
    headers.push_back(own);
    out += names;
    out.resize(round_up(out.size(), 8), '\0');
    write_headers(out, headers);
    return out;
  }

  void write_headers(std::string& out, const std::vector<Elf64_Shdr>& sections) {
    Elf64_Ehdr h = object_.header;
    h.e_type = ET_DYN;
    h.e_entry = 0;
    h.e_phoff = sizeof h;
    h.e_phentsize = sizeof(Elf64_Phdr);
    h.e_phnum = kHeaders;
    h.e_shoff = out.size();
    h.e_shentsize = sizeof(Elf64_Shdr);
    h.e_shnum = static_cast<Elf64_Half>(sections.size());
    h.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
    const auto program = program_headers();
    std::memcpy(out.data(), &h, sizeof h);
    std::memcpy(out.data() + sizeof h, program.data(), sizeof program);
    out.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
  }

  static constexpr size_t kHeaders = 7, kDynamicRows = 6;

  ElfFile object_;
  std::array<std::vector<Section>, kSegments> segments_;
  std::vector<Elf64_Sym> exported_;
  uint64_t end_ = 0;
};

}  // namespace

Expected<std::string> link_hsaco(std::string_view object) {
  auto parsed = read_elf(object, kAmdgpu, SHT_SYMTAB);
  if (!parsed) return parsed.error();
  return Linker(std::move(*parsed)).run();
}

}  // namespace tilegen::object
