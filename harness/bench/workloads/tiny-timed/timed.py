"""Run a training script unedited and print, for each epoch, its wall time and the CPU time of this process.

The same under collo and by hand, so that the two can be compared. usage: timed.py SCRIPT [ARGUMENT…]
"""

import json
import runpy
import sys
import time

import collo

begin, finish = collo.Epoch.__init__, collo.Epoch.finish


def begin_timed(self, *given, **named):
    begin(self, *given, **named)
    self.cpu_start_ns = time.process_time_ns()


def finish_timed(self, *given, **named):
    cpu_ns = time.process_time_ns() - self.cpu_start_ns
    finish(self, *given, **named)
    wall_ns = self.end_ns - self.start_ns
    print("timed", json.dumps({"measured": self.measured, "wall_ns": wall_ns, "cpu_ns": cpu_ns}), flush=True)


collo.Epoch.__init__, collo.Epoch.finish = begin_timed, finish_timed
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
