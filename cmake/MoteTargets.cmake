# Flags that every target of Mote shares.
add_library(mote_flags INTERFACE)
target_compile_options(mote_flags INTERFACE
  $<BUILD_INTERFACE:-Wall -Wextra -Wshadow -Wconversion -ffp-contract=off -fno-math-errno>
  $<BUILD_INTERFACE:$<$<BOOL:${MOTE_WARNINGS_AS_ERRORS}>:-Werror>>)
# gcc 12 sees overlapping copies in std::string's operator+ (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(mote_flags INTERFACE $<BUILD_INTERFACE:-Wno-restrict>)
endif()
target_compile_definitions(mote_flags INTERFACE $<$<CONFIG:Debug>:MOTE_ASSERTIONS>)
if(MOTE_SANITIZE)
  target_compile_definitions(mote_flags INTERFACE MOTE_ASSERTIONS)
  target_compile_options(mote_flags INTERFACE -fsanitize=${MOTE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # What is compiled once more for an instruction set has its pointers checked in the objects for every CPU: half the time of compiling.
  target_compile_options(
    mote_flags INTERFACE $<$<BOOL:$<TARGET_PROPERTY:MOTE_ISA>>:-fno-sanitize=alignment$<COMMA>null$<COMMA>object-size>)
  # So has the library that tests call, whose pointers they only pass on.
  target_compile_options(
    mote_flags INTERFACE $<$<BOOL:$<TARGET_PROPERTY:MOTE_IS_TEST>>:-fno-sanitize=alignment$<COMMA>null$<COMMA>object-size$<COMMA>vptr>)
  target_link_options(mote_flags INTERFACE -fsanitize=${MOTE_SANITIZE})
endif()

# Makes defects of memory harder to use, in what is released. Sanitizers replace the calls that _FORTIFY_SOURCE checks.
option(MOTE_HARDEN "Stack protectors, checked library calls, read-only relocations, control-flow protection" OFF)
if(MOTE_HARDEN AND NOT MOTE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)
  # Level 3 needs sizes that are known only when a program runs, which older compilers do not ask for.
  set(MOTE_FORTIFY 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(MOTE_FORTIFY 2)
  endif()
  # Some compilers define it themselves.
  target_compile_options(mote_flags INTERFACE
    $<BUILD_INTERFACE:-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${MOTE_FORTIFY}>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND NOT APPLE)
    target_compile_options(mote_flags INTERFACE $<BUILD_INTERFACE:-fcf-protection=full>)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND NOT APPLE)
    target_compile_options(mote_flags INTERFACE $<BUILD_INTERFACE:-mbranch-protection=standard>)
  endif()
  if(WIN32)
    target_link_options(mote_flags INTERFACE $<BUILD_INTERFACE:-Wl,--dynamicbase,--high-entropy-va,--nxcompat>)
  elseif(NOT APPLE)
    target_link_options(mote_flags INTERFACE $<BUILD_INTERFACE:-Wl,-z,relro,-z,now,-z,noexecstack>)
  endif()
endif()

# Where name.cpp asks the system, name_windows.cpp beside it keeps the same contract: name${MOTE_OF_SYSTEM}.cpp is the one for
# this system.
set(MOTE_OF_SYSTEM "")
if(WIN32)
  set(MOTE_OF_SYSTEM _windows)
  target_compile_definitions(mote_flags INTERFACE NOMINMAX WIN32_LEAN_AND_MEAN _WIN32_WINNT=0x0A00
    __USE_MINGW_ANSI_STDIO=1)
  # As much stack as Linux gives: programs and their threads would have an eighth of it.
  target_link_options(mote_flags INTERFACE $<BUILD_INTERFACE:-Wl,--stack,8388608>)
endif()

# Most of the time of compiling a source goes to its headers. The macros of windows.h would reach the sources behind it.
include(CMakeDependentOption)
cmake_dependent_option(
  MOTE_UNITY "Compile the sources of a room several at once, which takes a fraction of the time" ON "NOT WIN32" OFF)

# mote_unity(target): whose sources are compiled several at once. Names of their anonymous namespaces differ therefore.
function(mote_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MOTE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# One static library a folder. Its DEPENDS are its row of the import table in docs/architecture.md. APART: its sources are
# compiled one by one.
function(mote_library name)
  cmake_parse_arguments(arg "APART" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  if(NOT arg_APART)
    mote_unity(${name})
  endif()
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} PRIVATE $<BUILD_INTERFACE:mote_flags>)
endfunction()

# What emulates a CPU is slow: tests for which instructions are nothing are left out there. wine emulates none.
set(MOTE_EMULATED_CPU OFF)
if(CMAKE_CROSSCOMPILING AND NOT WIN32)
  set(MOTE_EMULATED_CPU ON)
endif()

# mote_test_on_lesser_cpus(name [filter]): runs the test again with the features of older CPUs only: masked, or on emulated
# ones. `filter` is GoogleTest's.
function(mote_test_on_lesser_cpus name)
  if(MOTE_EMULATED_CPU)
    set(cpus cortex-a76 cortex-a53)
    set(variable QEMU_CPU)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(cpus avx2+avx512 avx2+avxvnni avx2 none)
    set(variable MOTE_CPU_FEATURES)
  else()
    set(cpus dotprod none)
    set(variable MOTE_CPU_FEATURES)
  endif()
  foreach(cpu ${cpus})
    add_test(NAME ${name}_${cpu} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}_${cpu} PROPERTIES ENVIRONMENT "${variable}=${cpu};GTEST_FILTER=${ARGN}")
  endforeach()
endfunction()

# mote_test_program(name SOURCES ... DEPENDS ...): an executable with GoogleTest. What is tested is optimised, tests are not: that
# would take most of the time of a build.
set(MOTE_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
# gcc 12 sees overflows in strings that -O1 has not folded (GCC bug 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND MOTE_TEST_OPTIONS -Wno-array-bounds -Wno-stringop-overflow)
endif()
function(mote_test_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES MOTE_IS_TEST ON)
  target_compile_options(${name} PRIVATE ${MOTE_TEST_OPTIONS})
  if(WIN32)
    target_compile_options(${name} PRIVATE -include ${PROJECT_SOURCE_DIR}/tests/windows/posix.h)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} mote_flags GTest::gtest GTest::gtest_main)
endfunction()

# mote_test(name SOURCES ... DEPENDS ... [PARTS n]): a test program that ctest runs, in n parts that may run side by side.
function(mote_test name)
  cmake_parse_arguments(arg "" "PARTS" "SOURCES;DEPENDS" ${ARGN})
  mote_test_program(${name} SOURCES ${arg_SOURCES} DEPENDS ${arg_DEPENDS})
  target_precompile_headers(${name} REUSE_FROM mote_test_headers)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT arg_PARTS)
    return()
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=0")
  math(EXPR last "${arg_PARTS} - 1")
  foreach(part RANGE 1 ${last})
    add_test(NAME ${name}_part_${part} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}_part_${part} PROPERTIES
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${part}")
  endforeach()
endfunction()

# mote_cpp_schema(name schema folder): flatc makes ${folder}/${name}_generated.h of a flatbuffers schema; `folder` becomes a variable.
find_program(MOTE_FLATC flatc REQUIRED)
find_path(MOTE_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
function(mote_cpp_schema name schema folder)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
  get_filename_component(stem ${schema} NAME_WE)
  add_custom_command(
    OUTPUT ${generated}/${name}_generated.h
    COMMAND ${MOTE_FLATC} --cpp --cpp-std c++17 --scoped-enums --gen-object-api -o ${generated}/${name} ${schema}
    COMMAND ${CMAKE_COMMAND} -E rename ${generated}/${name}/${stem}_generated.h ${generated}/${name}_generated.h
    DEPENDS ${schema}
    COMMENT "flatc ${name}"
    VERBATIM)
  set(${folder} ${generated} PARENT_SCOPE)
endfunction()
