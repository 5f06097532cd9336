"""The comment lines that say what was injected into a prompt."""

import json
from dataclasses import replace

from newton.cognition.debug import debug_lines
