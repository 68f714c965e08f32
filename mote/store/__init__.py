"""The models of this user: a folder of `.mote` files with a manifest each, filled from the hub.

names.py     what `org/name@revision:tag` means
catalog.py   what is in the store; locks; removal
local.py     a path or a name to a file in the store, without the hub
hub.py       what a repository of the hub has
download.py  one file, resumable and verified
pull.py      a name to a file in the store, downloaded or exported
card.py      the model card of a pushed file

names and catalog import neither the runner nor the hub's client: `mote run org/name` starts as fast as with a path.
"""
