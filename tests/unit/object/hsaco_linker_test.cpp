// Objects that the linker refuses; what it makes is judged where it can be run
// (tests/amdemu/linker_test.cpp).
#include "object/hsaco_linker.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/diag_codes.h"

namespace tilegen::object {
namespace {

// An object of one section of code, `more` behind it, and a symbol of section `home`.
std::string object_of(uint16_t home, uint64_t flags = SHF_ALLOC | SHF_EXECINSTR, uint32_t relocation = 0) {
  const std::string code(16, '\x7f'), names("\0.text\0.symtab\0.strtab\0.rela\0kernel\0", 36);
  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = 29;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbols[1].st_shndx = home;
  Elf64_Rela rela{8, ELF64_R_INFO(1, relocation), 0};
  std::string bytes(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections(1);
  const auto add = [&](uint32_t name, uint32_t type, uint64_t section_flags, const void* data, size_t size,
                       uint32_t link, uint32_t info) {
    Elf64_Shdr h{};
    h.sh_name = name, h.sh_type = type, h.sh_flags = section_flags, h.sh_link = link, h.sh_info = info;
    h.sh_offset = bytes.size(), h.sh_size = size, h.sh_addralign = 1;
    bytes.append(static_cast<const char*>(data), size);
    sections.push_back(h);
  };
  add(1, SHT_PROGBITS, flags, code.data(), code.size(), 0, 0);
  add(7, SHT_SYMTAB, 0, symbols, sizeof symbols, 3, 1);
  add(15, SHT_STRTAB, 0, names.data(), names.size(), 0, 0);
  if (relocation) add(23, SHT_RELA, 0, &rela, sizeof rela, 2, 1);
  Elf64_Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64, h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_type = ET_REL, h.e_machine = 224;
  h.e_shoff = bytes.size(), h.e_shentsize = sizeof(Elf64_Shdr);
  h.e_shnum = static_cast<uint16_t>(sections.size()), h.e_shstrndx = 3;
  std::memcpy(bytes.data(), &h, sizeof h);
  bytes.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
  return bytes;
}

std::string refusal(const std::string& object) {
  auto made = link_hsaco(object);
  if (made) return "";
  EXPECT_EQ(made.error().diagnostics.at(0).code, DiagCode::backend_failure);
  return made.error().diagnostics.at(0).message;
}

TEST(HsacoLinker, ExportsWhatTheObjectExports) {
  auto made = link_hsaco(object_of(1));
  ASSERT_TRUE(made) << made.error().to_text();
  EXPECT_EQ(made->substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_NE(made->find("kernel"), std::string::npos);
  EXPECT_EQ(*made, *link_hsaco(object_of(1)));  // depends on the object alone
}

TEST(HsacoLinker, RefusesWhatIsNoObject) {
  EXPECT_NE(refusal("").find("shorter than its header"), std::string::npos);
  EXPECT_NE(refusal(std::string(200, 'x')).find("no ELF64 file"), std::string::npos);
  std::string shared = object_of(1);
  shared[16] = ET_DYN;
  EXPECT_NE(refusal(shared).find("no relocatable object"), std::string::npos);
  std::string other = object_of(1);
  other[18] = EM_X86_64;
  EXPECT_NE(refusal(other).find("machine 224"), std::string::npos);
}

TEST(HsacoLinker, RefusesAnyObjectThatEndsEarly) {
  const std::string whole = object_of(1, SHF_ALLOC | SHF_EXECINSTR, 4);
  ASSERT_EQ(refusal(whole), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "") << size << " of " << whole.size() << " bytes";
}

TEST(HsacoLinker, RefusesWhatItCannotLink) {
  EXPECT_NE(refusal(object_of(SHN_UNDEF)).find("needs symbol 'kernel'"), std::string::npos);
  EXPECT_NE(refusal(object_of(1, SHF_ALLOC | SHF_WRITE)).find("'.text' is written to"), std::string::npos);
  EXPECT_NE(refusal(object_of(1, SHF_ALLOC)).find("no code"), std::string::npos);
  EXPECT_NE(refusal(object_of(1, SHF_ALLOC | SHF_EXECINSTR, 3)).find("left to the loader"),
            std::string::npos);
}

}  // namespace
}  // namespace tilegen::object
