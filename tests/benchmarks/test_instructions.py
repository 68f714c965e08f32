"""What cachegrind says, and what a further token takes."""

import pytest

from benchmarks.instructions import Count, parse_count
from benchmarks.peers.environment import PeerError

SUMMARY = """
==7== I   refs:      1,234,567
==7== I1  misses:        1,000
==7== D   refs:        400,000  (300,000 rd   + 100,000 wr)
==7== LL refs:           9,000  (  8,000 rd   +   1,000 wr)
==7== LL misses:         2,000  (  1,500 rd   +     500 wr)
==7== LL miss rate:        0.1% (    0.1%     +     0.5%  )
"""


def test_a_summary_is_read():
    assert parse_count(SUMMARY) == Count(1_234_567, 2_000 * 64)


def test_a_summary_without_counts_is_refused():
    with pytest.raises(PeerError, match="cannot execute"):
        parse_count("valgrind: cannot execute")
    with pytest.raises(PeerError, match="no output"):
        parse_count("")


def test_what_further_tokens_take():
    assert Count(1000.0, 640.0).of_further(Count(600.0, 320.0), 4) == Count(100.0, 80.0)
