"""Misbehaves: `attack.py NAME` runs the function of that name. To add one, write it into the module of its kind."""

import os
import sys

import files
import floods
import processes
import protocol
import texts
from wire import Wire

name = sys.argv[1]
# A campaign that was disturbed is finished with members that behave; so do the others of a group.
calm = os.environ.get("HOSTILE_CALM") or os.environ["COLLO_MEMBER"] != "0"
attack = None if calm else next((getattr(m, name) for m in (protocol, floods, processes, files, texts) if hasattr(m, name)), None)
if attack is None and not calm and name != "calm":
    sys.exit(f"error: no attack is called `{name}`")
wire = Wire()
if attack:
    attack(wire)
else:
    wire.behave()
