"""The command line: ``python -m safepallas verify module:factory --devices 2 4 8``."""

import sys

from safepallas.verify._command import main

if __name__ == "__main__":
    sys.exit(main())
