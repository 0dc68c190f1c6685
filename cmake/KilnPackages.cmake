# Debian's packages, by `cpack -G DEB` (docs/packages.md): libkiln0.2, libkiln-dev, kiln, kiln-doc. The preset `debian` lays
# files out for them.
set(KILN_MAINTAINER "Kiln maintainers <maintainers@kiln.example.org>" CACHE STRING "Who answers for the packages: name <address>")
set(KILN_REVISION 1 CACHE STRING "Which packages of this version they are")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_VENDOR Kiln)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # it would be one for all packages
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime dev tools doc)
if(TARGET kiln_gobject)
  list(APPEND CPACK_COMPONENTS_ALL gobject gir)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${KILN_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_RELEASE ${KILN_REVISION})
set(CPACK_DEBIAN_PACKAGE_SOURCE kiln)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Symbols carry the version KILN_x.y, and the name of the library's package does, too: one entry of shlibs is enough.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${KILN_DEBIAN_ARCHITECTURE})
  set(CPACK_OBJDUMP_EXECUTABLE ${CMAKE_OBJDUMP})
endif()

set(about "Kiln loads a neural network from an ONNX file, optimizes it and runs it on\nthe CPU.")
# Settings of one component, whose package they are.
macro(kiln_package component name section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${about} ${text}")
  list(APPEND package_names ${name})
  foreach(file copyright changelog.gz changelog.Debian.gz)
    install(FILES ${CMAKE_BINARY_DIR}/debian/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
  endforeach()
endmacro()

set(library libkiln${KILN_ABI})
set(exactly "(= ${PROJECT_VERSION}-${KILN_REVISION})")
kiln_package(runtime ${library} libs "optimizer and CPU runtime for neural networks - library"
  "This package has the shared library, which programs\nneed that are built with Kiln.")
kiln_package(dev libkiln-dev libdevel "optimizer and CPU runtime for neural networks - development"
  "This package has the headers, the static library,\nand the packages for pkg-config and CMake.")
kiln_package(tools kiln science "optimizer and CPU runtime for neural networks"
  "This package has the command kiln, which runs,\noptimizes, compiles and compares models, and programs that measure Kiln.")
kiln_package(doc kiln-doc doc "optimizer and CPU runtime for neural networks - documentation"
  "This package has the documents and the examples.")
kiln_package(gobject libkiln-gobject${KILN_ABI} libs "optimizer and CPU runtime for neural networks - boxed types"
  "This package has a shared library for languages\nthat call Kiln by GObject introspection.")
kiln_package(gir gir1.2-kiln-${KILN_ABI} introspection "optimizer and CPU runtime for neural networks - introspection"
  "This package has the introspection data, which\nPython and other languages call Kiln with.")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_GOBJECT_PACKAGE_DEPENDS "${library} ${exactly}")
set(CPACK_DEBIAN_GIR_PACKAGE_DEPENDS "libkiln-gobject${KILN_ABI} ${exactly}, gir1.2-glib-2.0")
set(CPACK_DEBIAN_GIR_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS kiln-doc)
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "kiln-doc, kiln")
# pkg-config reads the packages that the static library needs, even for the shared one.
set(needs "${library} ${exactly}" libglib2.0-dev libprotobuf-c-dev libfyaml-dev libpng-dev libxxhash-dev)
foreach(row "JPEG libjpeg-dev" "JPEG2000 libopenjp2-7-dev" "WEBP libwebp-dev" "TIFF libtiff-dev")
  separate_arguments(row)
  list(GET row 0 format)
  list(GET row 1 package)
  if(format IN_LIST KILN_PICTURES)
    list(APPEND needs ${package})
  endif()
endforeach()
if(KILN_HAS_ONEDNN)
  list(APPEND needs libdnnl-dev)
endif()
if(TARGET kiln_gobject)
  list(APPEND needs "libkiln-gobject${KILN_ABI} ${exactly}" "gir1.2-kiln-${KILN_ABI} ${exactly}")
endif()
list(JOIN needs ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS)
# Libraries of several architectures can be installed side by side. Before 3.31 CMake has no variable for this field of the
# control file: it goes behind the field Section.
foreach(row "RUNTIME same" "GOBJECT same" "GIR same" "DEV same" "TOOLS foreign" "DOC foreign")
  separate_arguments(row)
  list(GET row 0 upper)
  list(GET row 1 multiarch)
  if(CMAKE_VERSION VERSION_LESS 3.31)
    string(APPEND CPACK_DEBIAN_${upper}_PACKAGE_SECTION "\nMulti-Arch: ${multiarch}")
  else()
    set(CPACK_DEBIAN_${upper}_PACKAGE_MULTIARCH ${multiarch})
  endif()
endforeach()

# dpkg calls ldconfig by a trigger. CMake writes scripts that call it unless there are some: names of files that do not exist
# keep it from that, with a warning.
file(WRITE ${CMAKE_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(none ${CMAKE_BINARY_DIR}/debian/none)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers ${none}/postinst ${none}/postrm)
set(CPACK_DEBIAN_GOBJECT_PACKAGE_CONTROL_EXTRA ${CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA})

# --- copyright and changelogs ---

configure_file(cmake/copyright.in ${CMAKE_BINARY_DIR}/debian/copyright @ONLY)
# An entry for each version of CHANGELOG.md, which tells the changes.
file(STRINGS CHANGELOG.md versions REGEX "^## \\[[0-9.]+\\] - ")
set(entries "")
foreach(line ${versions})
  string(REGEX REPLACE "^## \\[([0-9.]+)\\] - ([0-9-]+)" "\\1;\\2" line "${line}")
  list(GET line 0 version)
  list(GET line 1 date)
  execute_process(COMMAND date -u -R -d ${date} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND entries "kiln (${version}-${KILN_REVISION}) unstable; urgency=medium\n\n"
    "  * Version ${version}. The file changelog.gz lists the changes.\n\n -- ${KILN_MAINTAINER}  ${date}\n\n")
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/debian/changelog.Debian "${entries}")
file(COPY_FILE CHANGELOG.md ${CMAKE_BINARY_DIR}/debian/changelog)
foreach(file changelog changelog.Debian)
  execute_process(COMMAND gzip -9nf ${CMAKE_BINARY_DIR}/debian/${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
include(CPack)
