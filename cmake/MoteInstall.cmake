# Install rules. Embedders get libmote with its one header: find_package(mote), then link mote::mote.
include(CMakePackageConfigHelpers)

add_library(mote SHARED $<TARGET_OBJECTS:mote_capi>)
target_link_libraries(mote PRIVATE mote_chat mote_backends mote_base mote_flags)
target_include_directories(mote INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                          $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runner/capi>)
set_target_properties(mote PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                      PUBLIC_HEADER ${PROJECT_SOURCE_DIR}/runner/capi/mote.h)
install(TARGETS mote EXPORT moteTargets COMPONENT runtime
        PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT runtime)
if(TARGET mote-runner)
  install(TARGETS mote-runner COMPONENT runtime)
endif()
install(EXPORT moteTargets NAMESPACE mote:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mote COMPONENT runtime
        FILE moteConfig.cmake)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/moteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/moteConfigVersion.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mote
        COMPONENT runtime)

# What the Python packages need beside their sources.
if(SKBUILD)
  install(TARGETS _core DESTINATION llm_runner COMPONENT python)
  install(TARGETS llm_tokenizer_core DESTINATION llm_tokenizer COMPONENT python)
  install(TARGETS mote-runner DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  install(FILES ${MOTE_SCHEMA_PYTHON} DESTINATION llm_export/program COMPONENT python)
  # Type checkers read what an editable installation has beside the sources only where py.typed is too.
  install(FILES ${MOTE_OPTION_TYPES} ${PROJECT_SOURCE_DIR}/runner/python/llm_runner/py.typed DESTINATION llm_runner
          COMPONENT python)
endif()
