# libtilegen.so: the C entry points over the core. Exactly the functions of include/tilelang.h are exported; LLVM and
# the C++ runtime are inside and hidden, so that the library can live beside any other copy of them in one process.
find_package(Python3 COMPONENTS Interpreter REQUIRED)

set(TILEGEN_HEADER ${CMAKE_SOURCE_DIR}/include/tilelang.h)
set(TILEGEN_SYMBOL_MAP ${CMAKE_BINARY_DIR}/tilegen.map)
add_custom_command(
  OUTPUT ${TILEGEN_SYMBOL_MAP}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/gen_symbols.py ${TILEGEN_HEADER} -o ${TILEGEN_SYMBOL_MAP}
  DEPENDS ${TILEGEN_HEADER} ${CMAKE_SOURCE_DIR}/scripts/gen_symbols.py
  COMMENT "Symbol map from tilelang.h")
add_custom_target(tilegen_symbol_map DEPENDS ${TILEGEN_SYMBOL_MAP})

add_library(tilegen SHARED ${TILEGEN_CAPI_SOURCES})
add_library(tilegen::tilegen ALIAS tilegen)
add_dependencies(tilegen tilegen_symbol_map)
target_include_directories(tilegen PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                          $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(tilegen PRIVATE $<BUILD_INTERFACE:tilegen_core> $<BUILD_INTERFACE:tilegen_flags>)
target_compile_definitions(tilegen PRIVATE TILEGEN_VERSION="${PROJECT_VERSION}")
set_target_properties(tilegen PROPERTIES
  SOVERSION 0
  VERSION ${PROJECT_VERSION}
  PUBLIC_HEADER "${TILEGEN_HEADER};${CMAKE_SOURCE_DIR}/include/tilelang_expressions.h"
  SKIP_BUILD_RPATH ON  # it needs none: everything is inside
  LINK_DEPENDS ${TILEGEN_SYMBOL_MAP})
target_link_options(tilegen PRIVATE
  -Wl,--version-script=${TILEGEN_SYMBOL_MAP} -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--as-needed
  -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete -Wl,-z,noexecstack -Wl,--build-id=sha1)
# A word for each of a hundred thousand addresses that loading moves, in place of 24 bytes. GNU ld names the
# version of glibc that the loader asks for then; mold before 2.0 does not.
target_link_options(tilegen PRIVATE
  $<$<CONFIG:Release>:-fuse-ld=bfd> $<$<CONFIG:Release>:-Wl,-z,pack-relative-relocs>)
if(NOT TILEGEN_SANITIZE)
  # The sanitizers' run-time is resolved by the executable.
  target_link_options(tilegen PRIVATE -Wl,-z,defs -static-libstdc++ -static-libgcc)
endif()

# The commit shows in tl_build_info; without git it reads "unknown".
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE _commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT _commit)
  set(_commit unknown)
endif()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/capi/library.cpp PROPERTIES
  COMPILE_DEFINITIONS TILEGEN_COMMIT="${_commit}")
# clang 14 with libstdc++ 12 takes no std::string for a constant.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/capi/error.cpp PROPERTIES COMPILE_DEFINITIONS constinit=)
endif()

include(CMakePackageConfigHelpers)
# Everything a client needs is the component "library"; tools install themselves.
install(TARGETS tilegen EXPORT tilegen-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library
  PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT tilegen-targets NAMESPACE tilegen:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilegen
  COMPONENT library)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tilegen-config.cmake.in
  ${CMAKE_BINARY_DIR}/tilegen-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilegen)
# Until 1.0 a minor version may break its clients.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tilegen-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tilegen-config.cmake ${CMAKE_BINARY_DIR}/tilegen-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilegen COMPONENT library)
file(RELATIVE_PATH TILEGEN_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(${CMAKE_SOURCE_DIR}/cmake/tilegen.pc.in ${CMAKE_BINARY_DIR}/tilegen.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tilegen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
