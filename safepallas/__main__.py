"""The command line: ``python -m safepallas``, with one of two commands.

- ``verify module:factory --devices 2 4 8``: decide deadlocks, leaked semaphores and races.
- ``explain wrong-kind``: what the code at the end of a message means.
"""

import sys

from safepallas._verify.command_line import main

if __name__ == "__main__":
    sys.exit(main())
