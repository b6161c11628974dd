// Our linker against ld.lld, where that is installed: the same object, linked by both, has the same code,
// notes, descriptors and exports, by our reader and by llvm-readelf, and computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "code_object.h"
#include "codegen/gpu_code.h"
#include "object/elf_object.h"
#include "target/target.h"

namespace tilegen::amdemu {
namespace {

constexpr uint16_t kAmdgpu = 224;

// Y[i] = 2 * X[i] under a predicate, which makes code refer to constants beside it, and X in LDS.
thread::ThreadProgram scale_program(const std::string& name) {
  using namespace thread;
  ThreadProgram p;
  p.name = name;
  p.machine = *target::find_target("gfx942");
  p.threads = 64;
  p.arena_bytes = 256;
  p.thread_var = p.add_var("thread", ir::VarKind::thread);
  const ir::VarId n = p.add_var("n", ir::VarKind::dim);
  const auto tensor = [&](const char* tensor_name, bool read_only) {
    thread::Memory m;
    m.name = tensor_name;
    m.read_only = read_only;
    m.alignment = 4;
    m.param = static_cast<int>(p.params.size());
    const MemoryId id = p.add_memory(m);
    p.params.push_back({Param::Kind::tensor, tensor_name, ir::DType::f32, {}, id});
    return id;
  };
  const MemoryId x = tensor("X", true), y = tensor("Y", false);
  p.params.push_back({Param::Kind::dim, "n", ir::DType::i64, n, {}});
  thread::Memory tile;
  tile.name = "tile", tile.space = Space::shared, tile.elements = 64, tile.alignment = 16,
  tile.arena_offset = 0;
  const MemoryId shared = p.add_memory(tile);
  ir::ExprPool& e = p.exprs;
  p.grid = {e.const_int(1)};
  p.block_vars = {p.add_var("block", ir::VarKind::block_index)};
  const ir::ExprId t = e.var(p.thread_var), inside = e.binary(ir::ExprOp::lt, t, e.var(n));
  const ir::ExprId loaded = e.load(x, ir::DType::f32, std::vector<ir::ExprId>{t, inside});
  Store in;
  in.memory = shared, in.index = t, in.value = loaded;
  Store out;
  out.memory = y, out.index = t, out.predicate = inside;
  out.value = e.binary(ir::ExprOp::mul, e.load(shared, ir::DType::f32, std::vector<ir::ExprId>{t}),
                       e.const_float(2, ir::DType::f32));
  p.body = {p.add(in, name), p.add(Barrier{}, name), p.add(out, name)};
  return p;
}

codegen::HsacoResult compiled() {
  const std::vector<thread::ThreadProgram> kernels = {scale_program("first"), scale_program("second")};
  for (const thread::ThreadProgram& k : kernels)
    EXPECT_EQ(thread::verify_thread_program(k), std::vector<std::string>{});
  codegen::GpuCodegenOptions options;
  options.keep_assembly = true;
  auto made = codegen::compile_hsaco(kernels, *target::find_target("gfx942"), options);
  EXPECT_TRUE(made) << made.error().to_text();
  return made ? *made : codegen::HsacoResult();
}

std::string linked_by_lld(const std::string& object) {
  const std::string base = testing::TempDir() + "amdemu_linker";
  std::ofstream(base + ".o", std::ios::binary) << object;
  const std::string command = std::string(TILEGEN_LLD) + " -shared " + base + ".o -o " + base + ".hsaco";
  if (std::system(command.c_str()) != 0) return {};
  std::stringstream bytes;
  bytes << std::ifstream(base + ".hsaco", std::ios::binary).rdbuf();
  return bytes.str();
}

const object::ElfSection* section(const object::ElfFile& file, std::string_view name) {
  for (const object::ElfSection& s : file.sections)
    if (s.name == name) return &s;
  return nullptr;
}

// Name -> type, binding, visibility and size.
std::map<std::string, std::string> exports(const object::ElfFile& file) {
  std::map<std::string, std::string> all;
  for (const object::ElfSymbol& s : file.symbols)
    if (!s.name.empty())
      all[std::string(s.name)] = std::to_string(s.entry.st_info) + " " + std::to_string(s.entry.st_other) +
                                 " " + std::to_string(s.entry.st_size);
  return all;
}

std::vector<float> scaled(const std::string& object, const std::string& kernel) {
  CodeObject code(object);
  std::vector<float> x(40), y(64, -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) + 0.5f;
  const Memory memories[] = {{"X", std::as_writable_bytes(std::span(x)), false},
                             {"Y", std::as_writable_bytes(std::span(y)), true}};
  const Argument arguments[] = {{0, 0}, {0, 1}, {40}};
  LaunchOptions options;
  options.block[0] = 64;
  EXPECT_EQ(code.launch(kernel, memories, arguments, options).error, "");
  return y;
}

TEST(Linker, MakesWhatComputes) {
  const codegen::HsacoResult made = compiled();
  for (const char* kernel : {"first", "second"}) {
    const std::vector<float> y = scaled(made.hsaco, kernel);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i < 40 ? 2 * static_cast<float>(i) + 1 : -1) << i;
  }
  const CodeObject code(made.hsaco);
  for (const auto& [name, facts] : code.kernels()) {
    EXPECT_EQ(facts.lds_bytes, 256u) << name;
    EXPECT_EQ(facts.scratch_bytes, 0u);
    EXPECT_EQ(facts.most_threads, 64u);
  }
  EXPECT_EQ(code.kernels().size(), 2u);
}

TEST(Linker, AgreesWithLld) {
  if (std::string(TILEGEN_LLD).empty()) GTEST_SKIP() << "ld.lld is not installed";
  const codegen::HsacoResult made = compiled();
  const std::string other = linked_by_lld(made.object);
  ASSERT_FALSE(other.empty());
  const auto ours = object::read_elf(made.hsaco, kAmdgpu, SHT_DYNSYM);
  const auto theirs = object::read_elf(other, kAmdgpu, SHT_DYNSYM);
  ASSERT_TRUE(ours && theirs);
  EXPECT_EQ(ours->header.e_flags, theirs->header.e_flags);
  EXPECT_EQ(ours->header.e_type, theirs->header.e_type);
  EXPECT_EQ(ours->header.e_ident[EI_OSABI], theirs->header.e_ident[EI_OSABI]);
  EXPECT_EQ(ours->header.e_ident[EI_ABIVERSION], theirs->header.e_ident[EI_ABIVERSION]);
  EXPECT_EQ(exports(*ours), exports(*theirs));
  ASSERT_TRUE(section(*ours, ".note") && section(*theirs, ".note"));
  EXPECT_EQ(section(*ours, ".note")->bytes, section(*theirs, ".note")->bytes);
  EXPECT_EQ(section(*ours, ".text")->bytes.size(), section(*theirs, ".text")->bytes.size());
  CodeObject a(made.hsaco), b(other);
  ASSERT_EQ(a.kernels().size(), b.kernels().size());
  for (const auto& [name, facts] : a.kernels()) {
    const KernelFacts& same = b.kernels().at(name);
    EXPECT_EQ(facts.lds_bytes, same.lds_bytes);
    EXPECT_EQ(facts.argument_bytes, same.argument_bytes);
    EXPECT_EQ(facts.vgprs, same.vgprs);
    EXPECT_EQ(facts.first_agpr, same.first_agpr);
    EXPECT_EQ(facts.code_bytes, same.code_bytes);
    EXPECT_EQ(scaled(made.hsaco, name), scaled(other, name));
  }
}

// Lines of llvm-readelf's that say something of the contents, not of where they lie.
std::vector<std::string> read_by_llvm(const std::string& bytes, const std::string& name) {
  const std::string base = testing::TempDir() + name;
  std::ofstream(base, std::ios::binary) << bytes;
  const std::string command = std::string(TILEGEN_READELF) +
                              " --file-header --notes --dyn-syms --elf-output-style=GNU " + base + " > " +
                              base + ".txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::vector<std::string> lines;
  std::ifstream in(base + ".txt");
  // number and value, size to visibility, section, name
  const std::regex symbol("^ +[0-9]+: [0-9a-f]{16} +(.*) [0-9]+ (\\S+)$");
  for (std::string line; std::getline(in, line);) {
    for (const char* word : {"Entry point", "Start of", "Number of", "string table index", "File:"})
      if (line.find(word) != std::string::npos) line.clear();
    line = std::regex_replace(line, symbol, "$1 $2");
    if (!line.empty()) lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());  // symbols have no order
  return lines;
}

TEST(Linker, ReadsAsLldsByLlvmReadelf) {
  if (std::string(TILEGEN_LLD).empty() || std::string(TILEGEN_READELF).empty())
    GTEST_SKIP() << "ld.lld or llvm-readelf is not installed";
  const codegen::HsacoResult made = compiled();
  const std::vector<std::string> ours = read_by_llvm(made.hsaco, "amdemu_ours"),
                                 theirs = read_by_llvm(linked_by_lld(made.object), "amdemu_theirs");
  EXPECT_EQ(ours, theirs);
  const auto says = [&](const char* words) {
    return std::any_of(ours.begin(), ours.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  for (const char* words : {"AMDGPU", "gfx942", "amdhsa.kernels", ".group_segment_fixed_size: 256",
                            "64 OBJECT  GLOBAL PROTECTED   first.kd"})
    EXPECT_TRUE(says(words)) << words;
}

// Every dynamic tag that lld writes and that a loader needs.
TEST(Linker, WritesTheDynamicSection) {
  const codegen::HsacoResult made = compiled();
  const auto file = object::read_elf(made.hsaco, kAmdgpu, SHT_DYNSYM);
  ASSERT_TRUE(file);
  std::map<Elf64_Sxword, uint64_t> tags;
  for (const Elf64_Dyn& d : object::rows_of<Elf64_Dyn>(section(*file, ".dynamic")->bytes))
    tags[d.d_tag] = d.d_un.d_val;
  EXPECT_EQ(tags.at(DT_SYMTAB), section(*file, ".dynsym")->header.sh_addr);
  EXPECT_EQ(tags.at(DT_STRTAB), section(*file, ".dynstr")->header.sh_addr);
  EXPECT_EQ(tags.at(DT_STRSZ), section(*file, ".dynstr")->header.sh_size);
  EXPECT_EQ(tags.at(DT_HASH), section(*file, ".hash")->header.sh_addr);
  // Each exported name is found through the hash table.
  const auto hash = object::rows_of<Elf64_Word>(section(*file, ".hash")->bytes);
  size_t found = 0;
  for (size_t bucket = 0; bucket < hash[0]; ++bucket)
    for (Elf64_Word i = hash[2 + bucket]; i != 0; i = hash[2 + hash[0] + i]) ++found;
  EXPECT_EQ(found + 1, hash[1]);
}

}  // namespace
}  // namespace tilegen::amdemu
