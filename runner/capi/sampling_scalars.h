// The sampling options that are one number, by their name in mote_generation_options, in SamplingOptions and in Python.
#pragma once

#define MOTE_SAMPLING_SCALARS(X)                                                                                 \
  X(seed)                                                                                                        \
  X(temperature)                                                                                                 \
  X(top_k)                                                                                                       \
  X(top_p) X(min_p) X(typical_p) X(xtc_probability) X(xtc_threshold) X(repetition_penalty) X(repetition_window)  \
      X(frequency_penalty) X(presence_penalty) X(dry_multiplier) X(dry_base) X(dry_allowed_length) X(dry_window) \
          X(no_repeat_ngram_size) X(min_new_tokens)
