#include "runner/capi/mote.h"

_Static_assert(sizeof(mote_error) == 1032, "the layout of mote_error is part of the C API");
_Static_assert(offsetof(mote_session_info, position) == 16, "fields are only added at the end");
_Static_assert(offsetof(mote_piece, top_logprobs) == 40, "fields are only added at the end");

const char* version_seen_from_c(void);
const char* version_seen_from_c(void) { return mote_version(); }
