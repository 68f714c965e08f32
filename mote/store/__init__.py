"""The models of this user: a folder of `.mote` files with a manifest each, filled from the hub or by URL.

What names mean, what is in the folder and how a download goes on is decided below the C API (runner/store).

core.py      that C API, without the rest of the runner
names.py     what `org/name@revision:tag` means
catalog.py   what is in the store
local.py     a path or a name to a file in the store, without the hub
download.py  a name or an URL to a file in the store, by the hub's HTTP client
hub.py       what a repository of the hub has that is no .mote file
exports.py   what an export makes of that
card.py      the model card of a pushed file

names and catalog import neither the runner nor the hub's client: `mote run org/name` starts as fast as with a path.
"""
