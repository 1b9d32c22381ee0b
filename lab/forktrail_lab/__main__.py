"""`python -m forktrail_lab` is `forktrail`."""

import sys

from forktrail_lab.entry import main

if __name__ == "__main__":
    sys.exit(main())
