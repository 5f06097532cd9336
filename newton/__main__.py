"""`python -m newton` is `newton`."""

from newton.runtime.cli import main

main()
