"""Location of the data folders that ship with Newton, in a source tree or an installed wheel."""

from pathlib import Path
from typing import Literal

from newton.errors import ConfigError

_PACKAGE = Path(__file__).parents[1]


def data_folder(folder: Literal["frames", "guardrails", "procedures", "profiles", "schema"]) -> Path:
    """Return the path of a data folder that ships with Newton. Raises ConfigError if the installation lacks it."""
    # The copy in the wheel comes first: the parent of an installed package is site-packages, with any content.
    for home in (_PACKAGE / "_shipped", _PACKAGE.parent):
        if (home / folder).is_dir():
            return home / folder
    raise ConfigError(f"This installation has no {folder!r} folder.", hint="Reinstall Newton.")
