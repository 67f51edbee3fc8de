"""Files that ship with skillc: the grammar and the standard library.

In a checkout they stand beside the package, in a wheel inside it.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder `grammar` or `stdlib`, wherever this installation keeps it.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    for home in (_PACKAGE, _PACKAGE.parent):
        if (home / name).is_dir():
            return home / name
    raise FileNotFoundError(f"the folder `{name}` is missing from this installation of skillc; install it again")
