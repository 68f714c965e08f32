# cmake -DGIT=git -DSOURCE=folder -DOUT=commit.h -P write_commit.cmake: writes which commit is being built; "" where git does not know.
# MOTE_COMMIT in the environment comes first: for builds of an unpacked archive.
set(commit "$ENV{MOTE_COMMIT}")
if(NOT commit AND GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} describe --always --dirty=-dirty --exclude * --abbrev=7 WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define MOTE_COMMIT \"${commit}\"\n")
