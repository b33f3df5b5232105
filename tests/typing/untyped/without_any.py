"""An expression of Any in a file of this name, for mypy to find."""

import json

value = json.loads("1")
