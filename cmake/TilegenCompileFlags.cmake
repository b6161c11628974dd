# Flags of our own code (not of the headers it uses).
add_library(tilegen_flags INTERFACE)
target_compile_options(tilegen_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
if(TILEGEN_SANITIZE)
  add_compile_options(-fsanitize=${TILEGEN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${TILEGEN_SANITIZE})
endif()

find_program(TILEGEN_CCACHE ccache)
if(TILEGEN_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${TILEGEN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TILEGEN_CCACHE})
endif()
find_program(TILEGEN_LLD NAMES ld.lld-19 ld.lld PATHS /usr/lib/llvm-19/bin)
find_program(TILEGEN_MOLD mold)
if(TILEGEN_MOLD AND NOT TILEGEN_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()
