"""`python -m dngd` is the same as `dngd`."""

import sys

from dngd.cli import main

sys.exit(main())
