"""Settings of all tests."""

import os

from hypothesis import settings

# One run is like the other; MOTE_TEST_RANDOM=1 draws other examples each time.
settings.register_profile("mote", derandomize="MOTE_TEST_RANDOM" not in os.environ)
settings.load_profile("mote")
