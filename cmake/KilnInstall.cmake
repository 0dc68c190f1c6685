# The installed tree: libraries, headers, pkg-config and CMake packages, the command and the benches, manual pages, documents.
# Shipped pipelines are inside the library: `kiln opt --print-pipeline` writes one to change.
# Components: runtime (the shared library), dev, tools (the command and the benches), doc.
include(CMakePackageConfigHelpers)
option(KILN_DEBIAN "Lay files out for Debian's packages, which cpack -G DEB makes" OFF)

set(headers_dir ${CMAKE_INSTALL_INCLUDEDIR}/kiln)
install(TARGETS kiln EXPORT KilnTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  NAMELINK_COMPONENT dev INCLUDES DESTINATION ${headers_dir})
install(FILES $<TARGET_FILE:kiln_static> DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
get_property(bench_programs DIRECTORY ${CMAKE_SOURCE_DIR}/bench PROPERTY BUILDSYSTEM_TARGETS)
install(TARGETS kiln_command ${bench_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(DIRECTORY bench/cases DESTINATION ${CMAKE_INSTALL_DATADIR}/kiln/bench COMPONENT tools PATTERN README.md EXCLUDE)
function(kiln_strip_installed component file)
  file(RELATIVE_PATH file ${CMAKE_INSTALL_PREFIX} ${file})
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug --enable-deterministic-archives \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT ${component})
endfunction()
if(CMAKE_STRIP AND CMAKE_BUILD_TYPE STREQUAL "Release")
  kiln_strip_installed(runtime ${CMAKE_INSTALL_FULL_LIBDIR}/libkiln.so.${PROJECT_VERSION})
  kiln_strip_installed(dev ${CMAKE_INSTALL_FULL_LIBDIR}/libkiln.a)
  foreach(name kiln ${bench_programs})
    if(NOT name STREQUAL "kiln_command")
      kiln_strip_installed(tools ${CMAKE_INSTALL_FULL_BINDIR}/${name})
    endif()
  endforeach()
endif()
# kiln.h for users, passes/kiln-pass.h and what it includes for authors of plug-ins.
install(DIRECTORY include/kiln/ DESTINATION ${headers_dir} COMPONENT dev PATTERN README.md EXCLUDE)
install(FILES tools/completion/kiln.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME kiln COMPONENT tools)
install(FILES tools/completion/kiln.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
# Debian keeps site-functions for the administrator.
set(zsh_dir site-functions)
if(KILN_DEBIAN)
  set(zsh_dir vendor-completions)
endif()
install(FILES tools/completion/kiln.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_dir} RENAME _kiln COMPONENT tools)
include(cmake/KilnPages.cmake)
include(cmake/KilnReference.cmake)

# Documents lie beside the examples, as in the source tree, so that their links are good.
file(GLOB documents CONFIGURE_DEPENDS docs/*.md)
install(FILES README.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT doc)
install(DIRECTORY docs/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT doc)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
if(NOT KILN_DEBIAN)
  install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
endif()

# What links with the static library has to name what it uses, too: the vendor's library among it.
set(KILN_PRIVATE_PACKAGES "gmodule-2.0 libprotobuf-c libfyaml libpng libxxhash${KILN_PICTURE_PACKAGES}")
set(KILN_PRIVATE_VENDOR "")
if(KILN_HAS_ONEDNN)
  get_filename_component(vendor_dir ${KILN_DNNL_LIBRARY} DIRECTORY)
  set(KILN_PRIVATE_VENDOR " -L${vendor_dir} -ldnnl -lstdc++")
endif()
# Its OpenMP is the one of the compiler that built it, whatever compiler links.
set(KILN_PRIVATE_OPENMP -fopenmp)
if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(JOIN OpenMP_C_LIBRARIES " " KILN_PRIVATE_OPENMP)
endif()
# The target of users: what is exported names no target of this build.
set_target_properties(kiln PROPERTIES EXPORT_NAME kiln)
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Kiln)
install(EXPORT KilnTargets NAMESPACE Kiln:: DESTINATION ${cmake_dir} COMPONENT dev)
configure_package_config_file(cmake/KilnConfig.cmake.in ${CMAKE_BINARY_DIR}/KilnConfig.cmake
  INSTALL_DESTINATION ${cmake_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/KilnConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/KilnConfig.cmake ${CMAKE_BINARY_DIR}/KilnConfigVersion.cmake
  DESTINATION ${cmake_dir} COMPONENT dev)
# Relative to where the file lies, so that the installed tree can be moved.
file(RELATIVE_PATH KILN_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/kiln.pc.in ${CMAKE_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
if(KILN_DEBIAN)
  include(cmake/KilnPackages.cmake)
endif()
