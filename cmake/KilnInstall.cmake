# The installed tree: libraries, headers, pkg-config and CMake packages, the command, manual. Shipped
# pipelines are inside the library: `kiln opt --print-pipeline` writes one to change.
include(CMakePackageConfigHelpers)

set(headers_dir ${CMAKE_INSTALL_INCLUDEDIR}/kiln)
install(TARGETS kiln EXPORT KilnTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${headers_dir})
install(FILES $<TARGET_FILE:kiln_static> DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS kiln_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(CMAKE_STRIP AND CMAKE_BUILD_TYPE STREQUAL "Release")
  foreach(file ${CMAKE_INSTALL_FULL_LIBDIR}/libkiln.so.${PROJECT_VERSION} ${CMAKE_INSTALL_FULL_LIBDIR}/libkiln.a
      ${CMAKE_INSTALL_FULL_BINDIR}/kiln)
    file(RELATIVE_PATH file ${CMAKE_INSTALL_PREFIX} ${file})
    install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  endforeach()
endif()
# kiln.h for users, passes/kiln-pass.h and what it includes for authors of plug-ins.
install(DIRECTORY include/kiln/ DESTINATION ${headers_dir} PATTERN README.md EXCLUDE)
install(FILES tools/completion/kiln.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME kiln)
install(FILES docs/kiln.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

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
install(EXPORT KilnTargets NAMESPACE Kiln:: DESTINATION ${cmake_dir})
configure_package_config_file(cmake/KilnConfig.cmake.in ${CMAKE_BINARY_DIR}/KilnConfig.cmake
  INSTALL_DESTINATION ${cmake_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/KilnConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/KilnConfig.cmake ${CMAKE_BINARY_DIR}/KilnConfigVersion.cmake
  DESTINATION ${cmake_dir})
# Relative to where the file lies, so that the installed tree can be moved.
file(RELATIVE_PATH KILN_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/kiln.pc.in ${CMAKE_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
