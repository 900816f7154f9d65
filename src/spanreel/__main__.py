"""`python -m spanreel` is `spanreel`."""

import sys

from spanreel.cli import main

sys.exit(main())
