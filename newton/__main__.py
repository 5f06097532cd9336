"""Run `python -m newton` as `newton`."""

from newton.runtime.cli import main

main()
