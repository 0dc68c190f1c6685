# GLib and the parsers as archives inside the extension. Their symbols are not visible outside (src/module.map), so that another
# copy of GLib in the process, such as PyGObject's, is neither used nor disturbed.
function(kiln_python_archive out name)
  find_library(KILN_ARCHIVE_${name} NAMES lib${name}.a)
  if(NOT KILN_ARCHIVE_${name})
    message(FATAL_ERROR "KILN_PYTHON_STATIC: expected the archive lib${name}.a, found none")
  endif()
  set(${out} ${KILN_ARCHIVE_${name}} PARENT_SCOPE)
endfunction()

foreach(name gmodule-2.0 glib-2.0 pcre2-8 protobuf-c xxhash)
  kiln_python_archive(archive ${name})
  list(APPEND python_archives ${archive})
endforeach()

# Debian's libfyaml.a is compiled for programs: it reaches the streams of the C library as only a program may. The copy reaches
# variables of the extension instead, which src/static/streams.c sets.
kiln_python_archive(fyaml fyaml)
find_program(KILN_OBJCOPY objcopy REQUIRED)
set(fyaml_inside ${CMAKE_CURRENT_BINARY_DIR}/libfyaml-inside.a)
add_custom_command(OUTPUT ${fyaml_inside} DEPENDS ${fyaml} COMMENT "Copying libfyaml.a"
  COMMAND ${KILN_OBJCOPY} --redefine-sym stdin=kiln_py_stdin --redefine-sym stdout=kiln_py_stdout
    --redefine-sym stderr=kiln_py_stderr ${fyaml} ${fyaml_inside})
add_custom_target(kiln_python_fyaml DEPENDS ${fyaml_inside})
add_dependencies(kiln_python kiln_python_fyaml)

target_sources(kiln_python PRIVATE src/static/streams.c)
target_include_directories(kiln_python SYSTEM PRIVATE ${proto_dir} ${GLIB_INCLUDE_DIRS})
target_link_libraries(kiln_python PRIVATE ${python_archives} ${fyaml_inside} PkgConfig::PNG ${KILN_PICTURE_LIBRARIES}
  OpenMP::OpenMP_C m)
if(KILN_HAS_ONEDNN)
  target_link_libraries(kiln_python PRIVATE ${KILN_DNNL_LIBRARY})
endif()
