"""`python -m mote` is the command `mote`."""

from mote.cli import main

main()
