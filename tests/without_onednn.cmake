# Kiln without the vendor library, of the objects that there are: targets.c alone is compiled again, which is
# all of the library that sees KILN_HAS_ONEDNN, and what lies in backends/onednn is left out. So whatever else
# needs the vendor does not link.
set(root ${CMAKE_SOURCE_DIR})
set(all $<TARGET_OBJECTS:kiln_objects>)
add_library(kiln_without_onednn STATIC ${root}/runtime/targets.c
  $<FILTER:${all},EXCLUDE,/backends/onednn/|/runtime/targets\\.c>)
target_compile_definitions(kiln_without_onednn PRIVATE KILN_BUILDING)
target_link_libraries(kiln_without_onednn PUBLIC kiln_flags kiln_grow PkgConfig::GLIB PkgConfig::GMODULE PkgConfig::PROTOBUF_C
  PkgConfig::FYAML PkgConfig::JSON_GLIB PkgConfig::PNG ${KILN_PICTURE_LIBRARIES} PkgConfig::XXHASH OpenMP::OpenMP_C m)
foreach(of kiln_command kiln-golden-tests kiln-unit-tests kiln-random-graphs)
  add_executable(${of}-without-onednn $<TARGET_OBJECTS:${of}>)
  target_link_libraries(${of}-without-onednn PRIVATE kiln_without_onednn)
  set_target_properties(${of}-without-onednn PROPERTIES LINKER_LANGUAGE C ENABLE_EXPORTS ON)
endforeach()
foreach(of kiln-golden-tests kiln-unit-tests kiln-random-graphs)
  target_sources(${of}-without-onednn PRIVATE $<TARGET_OBJECTS:kiln-test-support>)
endforeach()
target_link_libraries(kiln-unit-tests-without-onednn PRIVATE PkgConfig::CRITERION)

# Kernels, the verifiers, the IR, inference and passes on the reference know nothing of the vendor: their suites would
# run the same objects once more.
add_test(NAME without_onednn.units COMMAND kiln-unit-tests-without-onednn --jobs 2
         --filter "!(cpu_*|ref_*|ir_*|infer_*|verify*|checklist|conversions|regex|plan|dim|low_bits)/*")
add_test(NAME without_onednn.goldens COMMAND kiln-golden-tests-without-onednn)
add_test(NAME without_onednn.random COMMAND kiln-random-graphs-without-onednn --first 1 --graphs 20)
if(KILN_SHARED_DIR)
  add_test(NAME without_onednn.models COMMAND kiln_command-without-onednn verify ${KILN_SHARED_DIR}/models)
endif()
# And the build itself: what is configured otherwise, and the other file that sees the difference.
set(other ${CMAKE_CURRENT_BINARY_DIR}/without-onednn)
add_test(NAME without_onednn.configure COMMAND ${CMAKE_COMMAND} -S ${root} -B ${other} -G ${CMAKE_GENERATOR}
  -DKILN_ONEDNN=OFF -DKILN_WERROR=ON -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER})
add_test(NAME without_onednn.costs COMMAND ${CMAKE_COMMAND} --build ${other} --target
  bench/CMakeFiles/kiln-fit-costs.dir/cost_vendor.c.o)
set_tests_properties(without_onednn.configure PROPERTIES FIXTURES_SETUP without_onednn
  FAIL_REGULAR_EXPRESSION "oneDNN [0-9]")
set_tests_properties(without_onednn.costs PROPERTIES FIXTURES_REQUIRED without_onednn)
if(NOT CMAKE_GENERATOR STREQUAL "Ninja")
  set_tests_properties(without_onednn.costs PROPERTIES DISABLED TRUE) # objects have no targets there
endif()
foreach(test units goldens random models)
  if(TEST without_onednn.${test})
    set_tests_properties(without_onednn.${test} PROPERTIES ENVIRONMENT "OMP_WAIT_POLICY=passive"
      FAIL_REGULAR_EXPRESSION "Tested: 0 |[1-9][0-9]* failed")
  endif()
endforeach()
