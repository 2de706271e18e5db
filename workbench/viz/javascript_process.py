"""The process that runs the page's JavaScript: one JSON message in, one out.

It is started by its path, by `javascript.py`, and imports nothing of the package, so that it starts
fast: a message is as in `base/child_process.py`, without blobs. A request is a script to evaluate,
or a function with its argument.
"""

import json
import os
import sys

MOST_BYTES = 1 << 30
"""Memory limit of V8, above which it raises an error; without a limit it would end the process."""


def main() -> None:
    """Answer requests until the input ends."""
    engine = None
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while size := requests.read(8):
        request = json.loads(requests.read(int.from_bytes(size, "little")))
        try:
            if engine is None:
                from py_mini_racer import MiniRacer

                engine = MiniRacer()
            if "script" in request:
                engine.eval(request["script"], max_memory=MOST_BYTES)
                value = None
            else:
                function = f"({request['function']})"
                argument = request["argument"]
                value = engine.call(function, argument, max_memory=MOST_BYTES)
            reply = json.dumps({"value": value}).encode()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            reply = json.dumps({"error": text}).encode()
        replies.write(len(reply).to_bytes(8, "little") + reply)
        replies.flush()
    os._exit(0)  # without waiting for V8's threads


if __name__ == "__main__":
    main()
