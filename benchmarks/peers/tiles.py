"""Keeps this process off AMX, for runtimes whose use of it is broken or not wanted."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_X86_64, _ARCH_PRCTL, _REQUEST_PERMISSION = 0xC000003E, 158, 0x1023
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _NOT_PERMITTED = 0x7FFF0000, 0x00050001


_refused = False


def refused() -> bool:
    """Whether `refuse` took effect in this process."""
    return _refused


def refuse() -> None:
    """Makes the kernel refuse AMX to this process from now on; libraries then take their AVX-512 or AVX2 path.

    Linux gives tiles only to a process that asks with arch_prctl, and a seccomp filter can deny that one request.
    Does nothing where the processor or the system is another. Errors: OSError if the filter is not taken
    """
    global _refused
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return
    steps = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 0, 5, _X86_64),
        (_LOAD_WORD, 0, 0, _NUMBER),
        (_JUMP_EQUAL, 0, 3, _ARCH_PRCTL),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_EQUAL, 0, 1, _REQUEST_PERMISSION),
        (_RETURN, 0, 0, _NOT_PERMITTED),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SET_SECCOMP, _FILTER_MODE, program, 0, 0)):
        if library.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "the system takes no seccomp filter")
    _refused = True
