# Install rules. Embedders get libmote with its one header: find_package(mote), then link mote::mote.
include(CMakePackageConfigHelpers)

add_library(mote SHARED $<TARGET_OBJECTS:mote_capi>)
target_link_libraries(mote PRIVATE mote_advice mote_chat mote_embedding mote_store mote_backends mote_base mote_flags)
target_include_directories(mote INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                          $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runner/capi>)
set_target_properties(mote PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                      PUBLIC_HEADER ${PROJECT_SOURCE_DIR}/runner/capi/mote.h)
install(TARGETS mote EXPORT moteTargets COMPONENT runtime
        PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT runtime)
if(TARGET mote-runner)
  install(TARGETS mote-runner COMPONENT runtime)
  include(MoteMan)
  install(DIRECTORY ${MOTE_MAN_DIR} DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT runtime OPTIONAL FILES_MATCHING PATTERN "*.1")
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
  # Not among the scripts, whose libraries auditwheel and delocate do not look at.
  install(TARGETS mote-runner DESTINATION llm_runner/bin COMPONENT python)
  install(FILES ${MOTE_SCHEMA_PYTHON} DESTINATION llm_export/program COMPONENT python)
  # Not into an editable installation, whose data pip would copy to every environment again.
  if(NOT SKBUILD_STATE STREQUAL "editable")
    install(DIRECTORY ${MOTE_MAN_DIR} DESTINATION ${SKBUILD_DATA_DIR}/share/man COMPONENT python OPTIONAL FILES_MATCHING PATTERN "*.1")
  endif()
  # An editable installation reads them where they are (llm_export/backends/__init__.py).
  if(NOT SKBUILD_STATE STREQUAL "editable")
    file(GLOB lowerings LIST_DIRECTORIES false RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS backends/*/__init__.py)
    foreach(file ${lowerings})
      get_filename_component(folder ${file} DIRECTORY)
      install(DIRECTORY ${folder} DESTINATION llm_export/backends COMPONENT python FILES_MATCHING PATTERN "*.py"
              PATTERN "__pycache__" EXCLUDE)
    endforeach()
  endif()
  # Type checkers read what an editable installation has beside the sources only where py.typed is too.
  install(FILES ${MOTE_OPTION_TYPES} ${PROJECT_SOURCE_DIR}/runner/python/llm_runner/py.typed DESTINATION llm_runner
          COMPONENT python)
endif()
