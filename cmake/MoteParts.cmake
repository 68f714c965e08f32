# The parts of Mote that a build can do without. docs/size.md says what each weighs and how to choose.
#
# MOTE_FOR names files to build for: .mote files, which a mote-runner of this version reads, or what its `inspect --parts` has
# written, in files that end in .parts. Relative paths begin at the source folder.
set(MOTE_FOR "" CACHE STRING "Build only what these .mote or .parts files need; empty: everything")
set(MOTE_PARTS "" CACHE STRING "With MOTE_FOR: further parts of cmake/MoteParts.cmake to build, or what their names begin with: grammars, linear.groups, ...")
set(MOTE_RUNNER "" CACHE FILEPATH "The mote-runner that reads the .mote files of MOTE_FOR; empty: that of the path")

# part | sources of kernels/ that only it needs. What has no sources here is left out by `if constexpr (is_built("part"))`
# (base/parts.h), and the linker drops what that no longer calls. An op is a part by its own name; ops of a folder of
# kernels/ops/ go together.
set(MOTE_PART_TABLE
  "linear.codes|ops/linear/codes_"              # int8 activations times tiles with scales of rows
  "linear.groups|ops/linear/groups_int8"        # int8 activations rounded in groups
  "linear.floats|ops/linear/(groups_)?floats_"  # float activations times tiles
  "weights.1|" "weights.2|" "weights.3|" "weights.4|" "weights.5|" "weights.6|" "weights.7|" "weights.8|"  # bits of tiles in products
  "tokenizer.bpe|"
  "tokenizer.unigram|"
  "tokenizer.wordpiece|"       # and WordLevel
  "tokenizer.sentencepiece|"   # models of SentencePiece's own files
  "tokenizer.unicode_forms|"   # NFC to NFKD, BERT's normaliser
  "tokenizer.charsmap|"        # tables of normalisation of SentencePiece
  "tokenizer.regex|"           # PCRE2: patterns for which there is no scanner
  "tokenizer.compile|"         # mote_check_tokenizer: tokenizer.json read on the device
  "templates|"                 # chat templates
  "sessions.files|"            # sessions saved and restored
  "sessions.batches|"          # several generations at once
  "sessions.beams|"            # beam search
  "adapters|"                  # LoRA adapters
  "embeddings|"                # methods that give embeddings
  "store|"                     # downloads, and models by name
  "advice|"                    # mote advise
  "reports|"                   # what a file and this machine are, as JSON; golden samples
  "grammars.json_schema|" "grammars.regex|" "grammars.gbnf|" "grammars.lark|"
  "backends.xnnpack|" "backends.vulkan|" "backends.qnn|" "backends.coreml|" "backends.coreai|")

# mote_ops_of(folder names): the ops that the files of a folder register, which are all that they put in quotes.
function(mote_ops_of folder names)
  file(GLOB files ${folder}/*.cpp)
  set(found)
  foreach(file ${files})
    file(READ ${file} text)
    string(REGEX MATCHALL "\"(aten|mote)\\.[a-z_0-9]+\"" quoted "${text}")
    list(APPEND found ${quoted})
  endforeach()
  list(REMOVE_DUPLICATES found)
  list(TRANSFORM found REPLACE "\"" "")
  set(${names} ${found} PARENT_SCOPE)
endfunction()

# mote_parts_of_files(parts): what the files of MOTE_FOR need.
function(mote_parts_of_files parts)
  find_program(runner NAMES mote-runner mote NO_CACHE NO_CMAKE_FIND_ROOT_PATH)
  if(MOTE_RUNNER)
    set(runner ${MOTE_RUNNER})
  endif()
  set(all)
  foreach(file ${MOTE_FOR})
    get_filename_component(file ${file} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "MOTE_FOR: ${file}: there is no such file")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    if(file MATCHES "\\.parts$")
      file(STRINGS ${file} needed)
    else()
      if(NOT runner)
        message(FATAL_ERROR "MOTE_FOR: ${file}: is read by mote-runner, which is not in the path: set MOTE_RUNNER, or give a .parts "
                            "file that `mote-runner inspect --parts` has written")
      endif()
      execute_process(COMMAND ${runner} inspect --parts ${file} OUTPUT_VARIABLE needed ERROR_VARIABLE error RESULT_VARIABLE failed)
      if(failed)
        message(FATAL_ERROR "MOTE_FOR: ${file}: ${error}")
      endif()
      string(REGEX MATCHALL "[^\r\n]+" needed "${needed}")
    endif()
    list(APPEND all ${needed})
  endforeach()
  set(${parts} ${all} PARENT_SCOPE)
endfunction()

set(MOTE_LEFT_OUT "")   # parts that this build has not, ops among them
set(MOTE_DROPPED "")    # sources of kernels/ that only they need, as regular expressions
if(MOTE_FOR)
  mote_parts_of_files(wanted)
  if(MOTE_BUILD_CLI)
    list(APPEND wanted reports)  # which mote-runner writes of each run
  endif()
  set(known)
  foreach(row ${MOTE_PART_TABLE})
    string(REGEX MATCH "^[^|]+" part "${row}")
    string(REGEX REPLACE "^[^|]+\\|" "" sources "${row}")
    list(APPEND known ${part})
    foreach(more ${MOTE_PARTS})
      if("${part}." MATCHES "^${more}\\.")
        list(APPEND wanted ${part})
      endif()
    endforeach()
    if(NOT part IN_LIST wanted)
      list(APPEND MOTE_LEFT_OUT ${part})
      if(sources)
        list(APPEND MOTE_DROPPED ${sources})
      endif()
    endif()
  endforeach()
  file(GLOB folders ${PROJECT_SOURCE_DIR}/kernels/ops/*)
  foreach(folder ${folders})
    mote_ops_of(${folder} ops)
    list(APPEND known ${ops})
    set(kept ${ops})
    list(REMOVE_ITEM kept ${wanted} ${MOTE_PARTS})
    list(LENGTH kept others)
    list(LENGTH ops count)
    # Other ops multiply with the folder linear, so of that only kernels are left out.
    if(others EQUAL count AND NOT folder MATCHES "/linear$")
      list(APPEND MOTE_LEFT_OUT ${ops})
      get_filename_component(name ${folder} NAME)
      list(APPEND MOTE_DROPPED "ops/${name}/")
    endif()
  endforeach()
  list(REMOVE_ITEM wanted ${known})
  if(wanted)
    message(FATAL_ERROR "MOTE_FOR: these sources have no part ${wanted}: the files need a later version of Mote")
  endif()
  foreach(more ${MOTE_PARTS})
    if(NOT ";${known}" MATCHES ";${more}[.;]" AND NOT more IN_LIST known)
      message(FATAL_ERROR "MOTE_PARTS: there is no part ${more}: must be of ${known}")
    endif()
  endforeach()
  list(LENGTH MOTE_LEFT_OUT count)
  message(STATUS "Built for ${MOTE_FOR}: ${count} parts are left out")
endif()

# mote_keep_sources(list): takes the sources of kernels/ from a list that this build leaves out.
function(mote_keep_sources name)
  set(kept ${${name}})
  foreach(dropped ${MOTE_DROPPED})
    list(FILTER kept EXCLUDE REGEX "/kernels/${dropped}")
  endforeach()
  set(${name} ${kept} PARENT_SCOPE)
endfunction()

# mote_built_parts(template header): writes what base/parts.h says of this build.
function(mote_built_parts template header)
  set(names)
  foreach(file ${MOTE_FOR})
    get_filename_component(name ${file} NAME)
    list(APPEND names ${name})
  endforeach()
  string(JOIN ", " built_for ${names})
  string(JOIN " " left_out ${MOTE_LEFT_OUT})
  configure_file(${template} ${header} @ONLY)
endfunction()
