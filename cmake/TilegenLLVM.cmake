# LLVM 19, linked statically. llvm-config is used instead of LLVM's CMake package because Debian's package names
# libraries (Polly, MLIR) that live in packages we do not need.
find_program(TILEGEN_LLVM_CONFIG NAMES llvm-config-19 PATHS /usr/lib/llvm-19/bin REQUIRED)
set(_components x86 nvptx amdgpu orcjit passes)
execute_process(COMMAND ${TILEGEN_LLVM_CONFIG} --version OUTPUT_VARIABLE TILEGEN_LLVM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT TILEGEN_LLVM_VERSION MATCHES "^19\\.")
  message(FATAL_ERROR "LLVM 19 is needed, found '${TILEGEN_LLVM_VERSION}' (${TILEGEN_LLVM_CONFIG}); install llvm-19-dev")
endif()
execute_process(COMMAND ${TILEGEN_LLVM_CONFIG} --includedir OUTPUT_VARIABLE _inc OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${TILEGEN_LLVM_CONFIG} --link-static --libfiles ${_components} OUTPUT_VARIABLE _libs OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(_libs)

# Headers for the folder that may include llvm/*.
add_library(tilegen_llvm INTERFACE)
target_include_directories(tilegen_llvm SYSTEM INTERFACE ${_inc})
target_compile_definitions(tilegen_llvm INTERFACE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)

# Objects to link: static archives of LLVM and of what it uses, so that the package needs nothing but glibc.
find_library(TILEGEN_ZSTD NAMES libzstd.a REQUIRED)
find_library(TILEGEN_ZLIB NAMES libz.a REQUIRED)
add_library(tilegen_llvm_link INTERFACE)
target_link_libraries(tilegen_llvm_link INTERFACE ${_libs} ${TILEGEN_ZSTD} ${TILEGEN_ZLIB} dl m)
