/* Core AI as functions in C, which runtime.swift makes of its interface in Swift. All calls wait until all is done. A
   handle belongs to whom it is given, who releases it. Where a call fails, `error` gets a sentence that ends with a 0.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mote_coreai_role { MOTE_COREAI_INPUT = 0, MOTE_COREAI_OUTPUT = 1, MOTE_COREAI_STATE = 2 } mote_coreai_role;

typedef enum mote_coreai_dtype {
  MOTE_COREAI_FLOAT32 = 0,
  MOTE_COREAI_FLOAT16 = 1,
  MOTE_COREAI_INT32 = 2
} mote_coreai_dtype;

typedef struct mote_coreai_error {
  char* text;
  int32_t size;
} mote_coreai_error;

/* An array by the name that a function has for it. */
typedef struct mote_coreai_argument {
  int32_t role;
  const char* name;
  void* array;
} mote_coreai_argument;

/* The elements of an array; strides count elements. */
typedef void (*mote_coreai_visitor)(void* context, void* elements, const int64_t* shape, const int64_t* strides,
                                    int32_t rank);

typedef struct mote_coreai_runtime {
  /* 0: this system has no Core AI. */
  int32_t (*is_there)(void);
  /* Specialises the asset for this device, unless the system has kept that. units: all, cpu, gpu or ane. NULL: failed
   */
  void* (*open_model)(const char* folder, const char* units, const mote_coreai_error* error);
  void* (*open_function)(void* model, const char* name, const mote_coreai_error* error);
  /* An array as a function wants it, with any content. NULL: it has none of that role, name and dtype */
  void* (*make_array)(void* function, int32_t role, const char* name, int32_t dtype, const mote_coreai_error* error);
  /* 0: its elements do not lie by strides. */
  int32_t (*visit)(void* array, mote_coreai_visitor visitor, void* context);
  /* Reads inputs, fills outputs and changes states. 0: failed */
  int32_t (*run)(void* function, const mote_coreai_argument* arguments, int32_t count, const mote_coreai_error* error);
  void (*release)(void* handle);
} mote_coreai_runtime;

/* From now on the backend runs assets by this one, which stays; NULL: there is none. */
#ifndef _WIN32
__attribute__((visibility("default")))
#endif
void mote_coreai_use(const mote_coreai_runtime* runtime);

#ifdef __cplusplus
}
#endif
