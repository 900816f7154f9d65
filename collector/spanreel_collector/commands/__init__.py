"""The commands that work on what was collected, one file each.

Their processes run no code of the user's: pydantic's plugins, which are there to watch the user's models, and which
pydantic imports with all that they need, stay away from ours.
"""

import os

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
