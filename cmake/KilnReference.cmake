# The reference manual of the C interface, where Doxygen is: the target docs-reference writes it to reference/html, and
# Debian's packages have it.
find_program(KILN_DOXYGEN doxygen)
if(KILN_DOXYGEN AND Python3_Interpreter_FOUND)
  set(reference ${CMAKE_BINARY_DIR}/reference)
  set(script ${CMAKE_SOURCE_DIR}/docs/reference/write_reference.py)
  add_custom_command(OUTPUT ${reference}/html/index.html VERBATIM
    COMMAND Python3::Interpreter -B ${script} ${CMAKE_SOURCE_DIR} ${reference}
    DEPENDS ${script} ${CMAKE_SOURCE_DIR}/docs/reference/filter.py ${CMAKE_SOURCE_DIR}/include/kiln/kiln.h ${public_headers}
    COMMENT "Writing the reference manual")
  set(all "")
  if(KILN_DEBIAN)
    set(all ALL)
  endif()
  add_custom_target(docs-reference ${all} DEPENDS ${reference}/html/index.html)
  install(DIRECTORY ${reference}/html/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/reference COMPONENT doc OPTIONAL)
endif()
