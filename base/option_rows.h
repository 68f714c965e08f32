// Options that users set are rows of a table, X(name, type, default, accepted values, unit, whether it asks for
// sampling, help): lists of rows stand beside the structs that are made of them. runner/generation/options makes the
// checks and the table that every front end reads.
#pragma once

// Of a row the field of its struct.
#define MOTE_OPTION_FIELD(name, type, default_value, ...) type name = default_value;
