"""`python -m treadle` is the command `treadle`."""

from treadle.cli import main

main()
