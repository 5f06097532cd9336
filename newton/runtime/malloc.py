"""Settings of the memory allocator of the C library for a process that runs for long."""

import ctypes

# Numbers of the parameters in malloc.h of glibc, and their values.
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
LARGE_BYTES, ARENAS = 1024 * 1024, 2


def limit_fragmentation() -> None:
    """Let glibc return freed memory to the system; with another C library, do nothing.

    By default, each thread that allocates gets an arena (up to eight per core), and blocks up to 32 MiB are cut from an
    arena, which keeps them when they are freed. Call this before threads are started.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_ARENA_MAX, ARENAS)
        set_option(M_MMAP_THRESHOLD, LARGE_BYTES)
