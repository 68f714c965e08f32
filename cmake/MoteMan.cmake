# The target mote_man: man pages of what was built, in MOTE_MAN_DIR. Installed with the runner, and in Python's wheels.
set(MOTE_MAN_DIR ${CMAKE_BINARY_DIR}/man1)
find_package(Python 3.11 QUIET COMPONENTS Interpreter)
if(NOT TARGET mote-runner OR NOT Python_Interpreter_FOUND)
  add_custom_target(mote_man)
  return()
endif()
set(runner $<TARGET_FILE:mote-runner>)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  string(JOIN " " runner ${CMAKE_CROSSCOMPILING_EMULATOR} ${runner})
endif()
if(MOTE_BUILD_PYTHON)
  get_filename_component(folder ${MOTE_OPTION_TYPES} DIRECTORY)
  set(options --options ${folder}/options.json)
endif()
add_custom_command(
  OUTPUT ${MOTE_MAN_DIR}/mote-runner.stamp
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/make_man_pages.py ${MOTE_MAN_DIR} --runner ${runner} ${options}
  COMMAND ${CMAKE_COMMAND} -E touch ${MOTE_MAN_DIR}/mote-runner.stamp
  DEPENDS mote-runner ${PROJECT_SOURCE_DIR}/scripts/make_man_pages.py ${MOTE_OPTION_TYPES}
  COMMENT "man pages"
  VERBATIM)
if(MOTE_BUILD_PYTHON OR MOTE_BUILD_TESTS)
  add_custom_target(mote_man DEPENDS ${MOTE_MAN_DIR}/mote-runner.stamp)
else()
  add_custom_target(mote_man ALL DEPENDS ${MOTE_MAN_DIR}/mote-runner.stamp)
endif()
