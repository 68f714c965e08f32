// Only there so that its target can precompile headers.
