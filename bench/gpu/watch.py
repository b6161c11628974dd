"""Ends the process when the GPU does not: a wait for it has no other way out."""
import os
import sys
import threading

EXIT_STATUS = 124


class watched:
    """with watched("gemm 4096x4096x64 nt, 128x256x64"): launches and waits for them. After TILEGEN_GPU_TIMEOUT seconds (60
    unless told otherwise, 0: for ever) this is written to stderr and the process ends with EXIT_STATUS."""

    def __init__(self, what):
        seconds = float(os.environ.get("TILEGEN_GPU_TIMEOUT", "60"))
        self._timer = threading.Timer(seconds, self._end, (what, seconds)) if seconds > 0 else None

    @staticmethod
    def _end(what, seconds):
        sys.stdout.flush()
        print(f"not finished after {seconds:g} seconds (TILEGEN_GPU_TIMEOUT), the process ends: {what}", file=sys.stderr, flush=True)
        os._exit(EXIT_STATUS)

    def __enter__(self):
        if self._timer:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_):
        if self._timer:
            self._timer.cancel()
