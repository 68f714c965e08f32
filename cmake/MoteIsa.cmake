# A file's name says which CPUs it is compiled for:
#   name.cpp          once, for every CPU of this architecture
#   name_avx2.cpp     once, with the flags of that row of the table, and only for that architecture
#   name_simd.cpp     once for every CPU and once for each row that says `simd`, in a namespace of its own (kernels/simd)
#   name_int8.cpp     likewise for the rows that say `int8`, which have dot products of bytes of their own
#   name_panels.cpp   likewise for the rows that say `panels`, which have products of matrices of their own
# rows: name, architecture, shared files, flags
set(avx2_flags "-mavx2 -mfma -mf16c")
set(avx512_flags "${avx2_flags} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512")
set(avx512vnni_flags "${avx512_flags} -mavx512vnni")
set(MOTE_ISA_TABLE
  "avx2|x86_64|simd int8 panels|${avx2_flags}"
  "avxvnni|x86_64|int8 panels|${avx2_flags} -mavxvnni"
  "avx512|x86_64|simd int8 panels|${avx512_flags}"
  "avx512vnni|x86_64|simd int8 panels|${avx512vnni_flags}"
  "amx|x86_64|none|${avx512vnni_flags} -mamx-tile -mamx-int8"
  "dotprod|aarch64|int8 panels|-march=armv8.2-a+dotprod"
  "i8mm|aarch64|panels|-march=armv8.2-a+dotprod+i8mm"
  "sme|aarch64|none|-march=armv8.2-a+dotprod+i8mm")
# zig names processors in a way of its own.
if(MOTE_ZIG)
  list(TRANSFORM MOTE_ISA_TABLE REPLACE "-march=armv8.2-a" "-mcpu=generic+v8_2a")
endif()

string(REGEX REPLACE "^(AMD64|amd64)$" "x86_64" MOTE_ARCHITECTURE "${CMAKE_SYSTEM_PROCESSOR}")
string(REGEX REPLACE "^(arm64|ARM64)$" "aarch64" MOTE_ARCHITECTURE "${MOTE_ARCHITECTURE}")

set(MOTE_INSTRUCTION_SETS ${MOTE_ISA_TABLE})
list(FILTER MOTE_INSTRUCTION_SETS INCLUDE REGEX "^[^|]*\\|${MOTE_ARCHITECTURE}\\|")
list(TRANSFORM MOTE_INSTRUCTION_SETS REPLACE "\\|.*" "")
# The code of avx2 but for one instruction, which few machines that run sanitizers have, and that of avx512vnni without it.
if(MOTE_SANITIZE)
  list(REMOVE_ITEM MOTE_INSTRUCTION_SETS avxvnni avx512)
  # Sanitized kernels take minutes a file to compile: those that would not run here are left out.
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
    if(cpu_flags AND NOT cpu_flags MATCHES " amx_int8")
      list(REMOVE_ITEM MOTE_INSTRUCTION_SETS amx)
    endif()
    if(cpu_flags AND NOT cpu_flags MATCHES " avx512_vnni")
      list(REMOVE_ITEM MOTE_INSTRUCTION_SETS avx512vnni)
    endif()
  endif()
endif()
set(MOTE_ISAS "" CACHE STRING "Names in that table that are built, beside the code for every CPU; none: all")
if(MOTE_ISAS)
  string(JOIN "|" names ${MOTE_ISAS})
  list(FILTER MOTE_INSTRUCTION_SETS INCLUDE REGEX "^(${names})$")
endif()

option(MOTE_SMALL_KERNELS "Kernels without tables for unwinding, one loop for widths of weights that few models have, and no attention that reads memory in one stream" OFF)

# Kernels are long after inlining. Debuggers get lines but no variables of theirs; what a sanitizer adds would keep gcc's register
# allocator busy for minutes a file, so that memory is checked by calls.
if(NOT MOTE_SANITIZE)
  set(MOTE_KERNEL_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-O3> $<$<CONFIG:RelWithDebInfo>:-g1>)
  # They throw nothing and call nothing that throws, so only stack traces miss what finds their callers.
  if(MOTE_SMALL_KERNELS)
    list(APPEND MOTE_KERNEL_OPTIONS -DMOTE_SMALL_KERNELS -fno-exceptions -fno-unwind-tables -fno-asynchronous-unwind-tables)
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(MOTE_KERNEL_OPTIONS -O1 -g1 -fira-region=one "SHELL:--param asan-instrumentation-with-call-threshold=0")
else()
  set(MOTE_KERNEL_OPTIONS -O1 -g1)
endif()

# gcc 12 sees reads of what its own AVX-512 intrinsics leave undefined on purpose (GCC bug 105593).
set(MOTE_ISA_OPTIONS ${MOTE_KERNEL_OPTIONS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND MOTE_ISA_OPTIONS -Wno-uninitialized -Wno-maybe-uninitialized)
endif()

# gcc aligns the stack of Windows to 16 bytes and still moves wider vectors there as if it were aligned to them (GCC bug 54412).
if(MINGW AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND MOTE_ISA_OPTIONS -Wa,-muse-unaligned-vector-move)
endif()

# mote_isa_sources(name SOURCES ...): one object library name_ISA for each row of the table that some of the files are for.
# Sets name_SOURCES, the files for every CPU, and name_OBJECTS, the objects of those libraries.
function(mote_isa_sources name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set(for_all ${arg_SOURCES})
  set(objects)
  foreach(row ${MOTE_ISA_TABLE})
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 isa)
    list(GET row 2 shared)
    list(GET row 3 flags)
    separate_arguments(flags)
    set(sources ${arg_SOURCES})
    list(FILTER sources INCLUDE REGEX "_${isa}\\.cpp$")
    list(FILTER for_all EXCLUDE REGEX "_${isa}\\.cpp$")
    string(REPLACE " " "|" suffixes "${shared}")
    set(shared_sources ${arg_SOURCES})
    list(FILTER shared_sources INCLUDE REGEX "_(${suffixes})\\.cpp$")
    list(APPEND sources ${shared_sources})
    if(NOT isa IN_LIST MOTE_INSTRUCTION_SETS OR NOT sources)
      continue()
    endif()
    add_library(${name}_${isa} OBJECT ${sources})
    set_target_properties(${name}_${isa} PROPERTIES MOTE_ISA ${isa})
    target_compile_definitions(${name}_${isa} PRIVATE MOTE_ISA=${isa})
    target_compile_options(${name}_${isa} PRIVATE ${flags} ${MOTE_ISA_OPTIONS})
    target_include_directories(${name}_${isa} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name}_${isa} PRIVATE mote_base mote_flags)
    list(APPEND objects $<TARGET_OBJECTS:${name}_${isa}>)
    set_property(GLOBAL APPEND PROPERTY MOTE_ISA_LIBRARIES ${name}_${isa})
  endforeach()
  set(${name}_SOURCES ${for_all} PARENT_SCOPE)
  set(${name}_OBJECTS ${objects} PARENT_SCOPE)
endfunction()
