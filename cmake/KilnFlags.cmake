# Compiler flags that every target shares, as one interface library.
add_library(kiln_flags INTERFACE)
target_compile_options(kiln_flags INTERFACE -Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
  # Kernels say where they fuse; nothing else may, or bits would differ between compilers.
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_compile_definitions(kiln_flags INTERFACE _GNU_SOURCE)
target_include_directories(kiln_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include/kiln)
# For what uses GLib: containers that survive where memory runs out, under GLib's names.
add_library(kiln_grow INTERFACE)
target_compile_options(kiln_grow INTERFACE
  "$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${CMAKE_SOURCE_DIR}/graph/grow/glib.h>")
if(KILN_WERROR)
  target_compile_options(kiln_flags INTERFACE -Werror)
endif()
if(NOT KILN_ASSERTIONS)
  target_compile_definitions(kiln_flags INTERFACE G_DISABLE_ASSERT)
endif()
if(KILN_SANITIZE)
  target_compile_definitions(kiln_flags INTERFACE KILN_SANITIZED)
  target_compile_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE})
  if(KILN_SANITIZE MATCHES "undefined" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # A check that fails traps, and AddressSanitizer prints where (handle_sigill=1). With texts, the checks have 25 MB of
    # tables in each process, and tests start thousands of processes.
    target_compile_options(kiln_flags INTERFACE -fsanitize-undefined-trap-on-error)
  endif()
  if(KILN_SANITIZE MATCHES "address")
    # A program at a fixed address relocates nothing when it starts.
    target_link_options(kiln_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()
if(KILN_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "KILN_FUZZ: expected clang, whose libFuzzer it is built with, found ${CMAKE_C_COMPILER_ID}")
  endif()
  target_compile_options(kiln_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(kiln_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(KILN_COVERAGE)
  # Threads add to the same counters.
  target_compile_options(kiln_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(kiln_flags INTERFACE --coverage)
endif()

# Leaves out of the list ${name} the sources for instruction sets that the processor does not have: others need no
# kernels but the portable ones.
function(kiln_leave_out_isa name)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(FILTER ${name} EXCLUDE REGEX "_avx[0-9a-z]*\\.c$")
    set(${name} "${${name}}" PARENT_SCOPE)
  endif()
endfunction()

# Files named *_avx2.c and *_avx512.c, or *_avxvnni.c and *_avx512vnni.c with dot products of bytes, are compiled
# for that instruction set and reached by run-time dispatch only.
function(kiln_isa_sources)
  foreach(source ${ARGN})
    # Unrolled kernels take clang minutes with all of it; that they stay within their buffers is what fuzzers look for.
    if(KILN_FUZZ AND source MATCHES "_(portable|avx2|avxvnni|avx512|avx512vnni)\\.c$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=undefined,fuzzer-no-link)
    endif()
    # Counters in the innermost loops would make every test wait; kernels are compared with the reference case by case.
    if(KILN_COVERAGE AND source MATCHES "_(portable|avx2|avxvnni|avx512|avx512vnni)\\.c$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O2 -fno-profile-arcs -fno-test-coverage)
    endif()
    if(source MATCHES "_avx2\\.c$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c)
    elseif(source MATCHES "_avxvnni\\.c$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c -mavxvnni)
    elseif(source MATCHES "_avx512(vnni)?\\.c$")
      set_property(SOURCE ${source} APPEND PROPERTY
        COMPILE_OPTIONS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512)
      # Formulas in four vectors at a time: GCC mixes them, which 32 registers have room for, only when asked.
      if(source MATCHES "elementwise_avx512" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fschedule-insns)
      endif()
      if(source MATCHES "vnni")
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -mavx512vnni)
      endif()
    endif()
  endforeach()
endfunction()
