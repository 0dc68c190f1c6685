# Manual pages. Those that have their text in documents and headers are written by scripts/write_man.py while Kiln is
# built. Debian wants pages compressed.
set(pages_dir ${CMAKE_BINARY_DIR}/pages)
set(pages "")

# Installs ${file}, a page of ${section}, under its own name and the names behind.
function(kiln_install_page component file section)
  set_property(GLOBAL APPEND PROPERTY kiln_pages ${file})
  get_filename_component(name ${file} NAME)
  set(suffix "")
  if(KILN_DEBIAN)
    set(suffix .gz)
    add_custom_command(OUTPUT ${pages_dir}/${name}.gz DEPENDS ${file} VERBATIM
      COMMAND sh -c "gzip -9nc \"$1\" >\"$2\"" sh ${file} ${pages_dir}/${name}.gz)
    set(file ${pages_dir}/${name}.gz)
  endif()
  set(pages ${pages} ${file} PARENT_SCOPE)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
  foreach(other ${ARGN})
    file(CREATE_LINK ${name}${suffix} ${pages_dir}/${other}.${section}${suffix} SYMBOLIC)
    install(FILES ${pages_dir}/${other}.${section}${suffix} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
  endforeach()
endfunction()

file(MAKE_DIRECTORY ${pages_dir})
kiln_install_page(tools ${CMAKE_SOURCE_DIR}/docs/kiln.1 1)
kiln_install_page(tools ${CMAKE_SOURCE_DIR}/docs/kiln-bench.1 1 ${bench_programs})
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  file(GLOB public_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/kiln/*/kiln-*.h)
  set(written ${pages_dir}/kiln-pipeline.5 ${pages_dir}/kiln.h.3)
  add_custom_command(OUTPUT ${written} VERBATIM
    COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/scripts/write_man.py ${CMAKE_SOURCE_DIR} ${pages_dir}
    DEPENDS ${CMAKE_SOURCE_DIR}/scripts/write_man.py ${CMAKE_SOURCE_DIR}/docs/pipelines.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
      ${CMAKE_SOURCE_DIR}/include/kiln/kiln.h ${public_headers}
    COMMENT "Writing manual pages")
  kiln_install_page(tools ${pages_dir}/kiln-pipeline.5 5)
  kiln_install_page(dev ${pages_dir}/kiln.h.3 3)
else()
  message(STATUS "Built without kiln-pipeline(5) and kiln.h(3): expected Python 3 (apt install python3)")
endif()
add_custom_target(kiln_pages ALL DEPENDS ${pages})
