# The version is that of the newest tag vX.Y.Z behind the commit. Python's builds give it (setuptools-scm reads the same tags);
# without a tag or git it is the fallback of pyproject.toml.
# Sets MOTE_VERSION, as Python writes it, and MOTE_VERSION_NUMBERS, which CMake can compare.
find_package(Git QUIET)
set(MOTE_VERSION "${SKBUILD_PROJECT_VERSION_FULL}")
if(NOT MOTE_VERSION AND Git_FOUND AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/../.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --tags --abbrev=0 --match "v[0-9]*" WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
                  OUTPUT_VARIABLE MOTE_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX REPLACE "^v" "" MOTE_VERSION "${MOTE_VERSION}")
endif()
if(NOT MOTE_VERSION)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../pyproject.toml line REGEX "^fallback_version")
  string(REGEX REPLACE "^fallback_version = \"(.*)\"$" "\\1" MOTE_VERSION "${line}")
endif()
string(REGEX MATCH "^[0-9]+(\\.[0-9]+)*" MOTE_VERSION_NUMBERS "${MOTE_VERSION}")

# mote_commit_header(name folder): a target that writes ${folder}/commit.h at every build, only when it says something new.
function(mote_commit_header name folder)
  add_custom_target(${name}
    COMMAND ${CMAKE_COMMAND} -DGIT=${GIT_EXECUTABLE} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${folder}/commit.h
            -P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake
    BYPRODUCTS ${folder}/commit.h
    VERBATIM)
endfunction()
