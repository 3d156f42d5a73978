"""The member's side of the protocol, JSON lines between a training script and collo. Standard library only.

    member = collo.connect()
    member.hello(device="cpu", model=("resnet", 175258))
    member.wait_for_warm_up()                    # members warm up one at a time
    ...                                          # a few batches that nobody measures
    member.ready()                               # returns when every member of the group is ready
    for epoch in member.epochs():
        for batch in epoch.batches(batches):     # ends the process here when collo says stop
            ...
        epoch.finish(items=1024, loss=2.1)

Run by hand, without collo, the same script simply trains and prints one line per epoch. An exception that ends the
script is told to collo before the traceback is printed. Every message is in `protocol.jsonl`.
"""

import atexit
import errno
import json
import math
import operator
import os
import queue
import re
import socket
import sys
import threading
import time

PROTOCOL = 1
EPOCHS_BY_HAND = 2
LIBRARIES = ("torch", "torchvision", "timm", "transformers", "numpy")  # their versions belong to the hello
REQUESTS_PER_LINE = 2000  # some 100 kB: far from the longest line that collo reads
GRACE_S = 2.0  # a batch may take long: after stop, the script has this much time to leave by itself
GRACE_ON_A_GPU_S = 4.0  # what it has queued there and CUDA's tear-down take longer; the harness kills after 5 s


class DataError(Exception):
    """The data cannot be used: one line with the file, the reason and the way out. Shown without a traceback."""


class SettingError(Exception):
    """A setting cannot be had: one line with the setting, the reason and the way out. Shown without a traceback."""


def connect():
    """Join the group that collo started this process for; by hand, a member on its own."""
    member = Member(_channel(), _seat())
    sys.excepthook = member._tell_error
    atexit.register(member._skip_tear_down)
    return member


def describing():
    """Whether this process is asked what it would train, instead of training; see `collo_describe.py`."""
    return bool(os.environ.get("COLLO_DESCRIBE"))


def expect_description():
    """Said by what will describe this script's step; a script for which nobody says so cannot be described."""
    global _description_expected
    _description_expected = True


_description_expected = False


def hosted():
    """Whether this member is a thread beside others, in one process; see `collo_host.py`."""
    return _seat() is not None


def _seat():
    """The member's place in a process of several, which is what the host keeps of its own for it."""
    host = sys.modules.get("collo_hosted")
    return host.seat() if host else None


def threads():
    """How many intra-op threads this member may use: 1 unless the experiment says otherwise."""
    return int(os.environ.get("COLLO_THREADS", "1"))


def _channel():
    if hosted():
        return _seat().channel()
    # Taken out of the environment and closed on exec: what this process starts is no member.
    descriptor, path = os.environ.pop("COLLO_FD", None), os.environ.pop("COLLO_SOCKET", None)
    try:
        if descriptor:
            os.set_inheritable(int(descriptor), False)
            return socket.socket(fileno=int(descriptor))
        if path:
            channel = socket.socket(socket.AF_UNIX)
            channel.connect(path)
            return channel
    except (OSError, ValueError) as error:
        name = f"COLLO_FD={descriptor}" if descriptor else f"COLLO_SOCKET={path}"
        sys.exit(f"error: nobody at `{name}`: {error}\nhint: unset it to train by hand")


class Member:
    def __init__(self, channel, seat=None):
        self.channel, self._seat = channel, seat
        self.stopped = False  # collo said stop, or is gone
        self._leaving = False  # and the script obeys
        self._said = set()  # of what is said once, and in this order: hello, ready
        self._go = {"epochs": EPOCHS_BY_HAND, "after_measured": "exit"}
        self._commands = queue.SimpleQueue()
        if channel:
            threading.Thread(target=self._listen, name="collo", daemon=True).start()

    def hello(self, device="cpu", sm_count=None, threads=1, model=None, dataset=None, versions=None, **more):
        """Say what is about to train. `model` is (name, parameters), `dataset` a dict of name, synthetic and items.

        `more` is kept word for word; `memory_bytes` of the device and `limit_batches`, where epochs are cut short, are known.
        Who answers requests instead of training says so by `serving`, a dict of rate_per_s, batch_size and slo_s.
        """
        self._once("hello")
        self._agree()
        if self._seat:
            more["thread"] = self._seat.thread()
        hello, by_hand = {"device": device, "sm_count": sm_count, "threads": threads, **more}, []
        if model:
            hello["model"] = {"name": model[0], "parameters": model[1]}
            by_hand.append(f"{model[0]}, {model[1]} parameters")
        if dataset:
            hello["dataset"] = dataset
            by_hand.append(dataset["name"] + (", a synthetic stand-in" if dataset["synthetic"] else ""))
        versions = {**_versions(), **(versions or {})}
        self._send("hello", protocol=PROTOCOL, pid=os.getpid(), versions=versions, **hello)
        if self._seat:
            self._seat.settled.set()
        if not self.channel:
            device += f", {sm_count} SMs" if sm_count else ""
            print(*by_hand, f"device {device}, {threads} thread{'s' if threads != 1 else ''}", sep="; ", flush=True)

    def wait_for_warm_up(self):
        """Return when it is this member's turn to warm up."""
        self._after("hello", "wait_for_warm_up")
        if describing() and not _description_expected:
            reason = "this script has no training step of `collo_torch`, Lightning or transformers"
            raise SettingError(f"{reason}, so nothing of it can be described: measure it instead")
        self._wait_for("warm_up")
        self._agree()

    def ready(self):
        """Set-up and warm-up are over. Return when everybody's are."""
        self._after("hello", "ready")
        self._once("ready")
        self._agree()
        self._send("ready")
        self._go = self._wait_for("go") or self._go
        self._agree()

    def epochs(self, by_hand=EPOCHS_BY_HAND, before_done=lambda: None):
        """The epochs to train: a warm-up, the measured ones, and under `keep-running` more of them until stop.

        `before_done()` is called after the last measured epoch and before collo is notified, which may then send stop.
        """
        self._after("ready", "epochs")
        count = self._go["epochs"] if self.channel else by_hand
        least_ns = self._go.get("measure_for_ns", 0)  # from the start of the first measured epoch
        index, done, measured_from_ns = 0, False, None
        while not done or self._go["after_measured"] == "keep-running":
            epoch = Epoch(self, index, measured=not done and (index > 0 or count == 1))
            yield epoch
            if epoch.measured and measured_from_ns is None:
                measured_from_ns = epoch.start_ns  # read now: a trainer's callback may have moved it
            if epoch.end_ns is None:
                raise RuntimeError(f"epoch {index} has no end: call `epoch.finish()` after its last batch")
            index += 1
            if not done and index >= count and epoch.end_ns - (measured_from_ns or 0) >= least_ns:
                done = True
                before_done()
                self._send("done")

    def memory(self, allocated_bytes, reserved_bytes, warm_up_allocated_bytes=None, warm_up_reserved_bytes=None):
        """The GPU allocator's own peaks, and those before `ready` where they are known; nothing to say on a CPU.

        Nor in a process of several, whose allocator is one.
        """
        if self._seat:
            return
        peaks = {"allocated_bytes": allocated_bytes, "reserved_bytes": reserved_bytes}
        before = {"warm_up_allocated_bytes": warm_up_allocated_bytes, "warm_up_reserved_bytes": warm_up_reserved_bytes}
        self._send("memory", **peaks, **before)

    def features(self, **features):
        """What predictors are trained on; once, see `collo_features.py`."""
        self._send("features", **features)

    def capacity(self, requests_per_s, one_by_one_per_s=None):
        """What a member that serves can answer when it is never idle, found in its warm-up."""
        self._send("capacity", requests_per_s=requests_per_s, one_by_one_per_s=one_by_one_per_s)

    def requests(self, arrival_ns, start_ns, end_ns):
        """Requests that came to a member that serves: lists of nanoseconds of `time.monotonic_ns()`, of one length.

        When each was due, when work on it began, when its answer was there; None for what has not happened by the time
        the member leaves. Each request is told once, best about once a second and before the end of each epoch.
        """
        if not len(arrival_ns) == len(start_ns) == len(end_ns):
            told = f"{len(arrival_ns)} arrivals, {len(start_ns)} starts and {len(end_ns)} ends"
            raise ValueError(f"{told}: each request has all three, None for what has not happened")
        for first in range(0, len(arrival_ns), REQUESTS_PER_LINE):
            some = slice(first, first + REQUESTS_PER_LINE)
            self._send("requests", arrival_ns=arrival_ns[some], start_ns=start_ns[some], end_ns=end_ns[some])

    def leave_if_stopped(self):
        if self.stopped:
            self._leaving = True
            _let_the_gpu_finish()
            sys.exit(0)

    def _agree(self):
        """In a process of several: whether its settings are as all members want them."""
        if self._seat and self.channel:
            self._seat.look()

    def _agree_still(self):
        """At the end of an epoch, behind its time: it was trained under the settings that all had agreed on."""
        if self._seat and self.channel:
            self._seat.look_again()

    def _once(self, word):
        if word in self._said:
            raise RuntimeError(f"`member.{word}()` was called before: it is said once")
        self._said.add(word)

    def _after(self, word, then):
        if word not in self._said:
            raise RuntimeError(f"call `member.{word}()` before `member.{then}()`")

    def _send(self, event, **fields):
        line = json.dumps({"event": event, **fields}, allow_nan=False) + "\n"
        try:
            if self.channel:
                self.channel.sendall(line.encode())  # one write
        except OSError:  # collo is gone
            if self._send_again(line):
                return
            self.stopped = True
            self.leave_if_stopped()

    def _send_again(self, line):
        """In a process of several, somebody may have closed this member's descriptor: the host has another."""
        again = self._seat and self._seat.channel_again()
        if not again:
            return False
        try:
            again.sendall(line.encode())
        except OSError:
            return False
        self.channel = again
        return True

    def _wait_for(self, command):
        while self.channel:
            message = self._commands.get()
            self.leave_if_stopped()
            if message.get("command") == command:
                return message

    def _listen(self):
        """The listening thread: it sleeps in a read, so it costs the training nothing."""
        # In a process of several it has a descriptor of its own: what others, or the script, close is not that.
        channel = (self._seat and self._seat.channel_again()) or self.channel
        try:
            for line in channel.makefile("rb"):
                message = json.loads(line)
                if message.get("command") == "stop":
                    break
                self._commands.put(message)
        except (OSError, ValueError, AttributeError):
            pass  # a channel that cannot be read is as good as closed
        self.stopped = True
        self._commands.put(None)
        time.sleep(GRACE_ON_A_GPU_S if _cuda() else GRACE_S)
        if self._seat:
            self._seat.ask_to_leave()  # there is no ending a thread
        else:
            _end()

    def _tell_error(self, kind, error, traceback):
        try:
            memory = _card_memory()
            what, whose = _judge(error, memory)
            self._send("error", kind=what, message=(str(error) or kind.__name__)[:2000], whose=whose, **memory)
        except SystemExit:
            pass  # nobody is left to tell; the log still gets the traceback
        if isinstance(error, (DataError, SettingError)):
            print(f"error: {error}", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, traceback)

    def _skip_tear_down(self):
        # Taking apart an interpreter with torch in it lasts half a second. A GPU, though, is left in good order.
        if self._leaving and not _cuda() and not self._seat:
            sys.stdout.flush()
            _end()


class Epoch:
    """One pass over the data. Its time runs from the moment it is handed out to `finish`."""

    def __init__(self, member, index, measured):
        self.member, self.index, self.measured = member, index, measured
        self.start_ns, self.end_ns = time.monotonic_ns(), None
        self._profile = _profile(index) if measured else None

    def batches(self, batches):
        for batch in batches:
            self.member.leave_if_stopped()
            yield batch

    def finish(self, items=None, loss=None):
        """End the epoch. On a GPU, `collo.synchronise()` first: reading the loss with `.item()` does as well."""
        if self.end_ns is not None:
            raise RuntimeError(f"epoch {self.index} was finished before: call `epoch.finish()` once, after its last batch")
        self.member.leave_if_stopped()  # it may have been cut short
        if self._profile:
            self._profile.end()
        self.end_ns = time.monotonic_ns()
        items = None if items is None else _count("items", items)
        loss = float(loss) if loss is not None and math.isfinite(loss) else None  # JSON knows no NaN
        what = {"index": self.index, "measured": self.measured, "items": items, "loss": loss}
        self.member._agree_still()
        self.member._send("epoch", **what, start_ns=self.start_ns, end_ns=self.end_ns)
        if not self.member.channel:
            seconds, tail = (self.end_ns - self.start_ns) / 1e9, "" if loss is None else f", loss {loss:.4f}"
            print(f"epoch {self.index} took {seconds:.4f} s{tail}", flush=True)


def _profile(index):
    """What watches an epoch from the inside; see `collo_profiler.py`."""
    if os.environ.get("COLLO_TORCH_PROFILER"):
        import collo_profiler

        return collo_profiler.begin(index)
    return None


def _count(name, number):
    """A whole number that is not negative, numpy's among them."""
    try:
        count = operator.index(number)
    except TypeError:
        raise TypeError(f"`{name}` is {number!r}: it is a whole number") from None
    if count < 0:
        raise ValueError(f"`{name}` is {count}: it is 0 or more")
    return count


def _cuda():
    """torch.cuda, if this process uses it."""
    cuda = sys.modules.get("torch.cuda")
    is_initialized = getattr(cuda, "is_initialized", None)  # not there yet while it is being imported
    return cuda if is_initialized and is_initialized() else None


def synchronise(device=None):
    """Wait until the GPU, if there is one, has done what this member gave it to do.

    In a process of several that is what is on its stream: `torch.cuda.synchronize()` would wait for what others have on
    their way, too (CUDA runtime API, `cudaDeviceSynchronize`: "all preceding requested tasks" of the device).
    """
    cuda = _cuda()
    if cuda and getattr(device, "type", "cuda") == "cuda":
        cuda.current_stream(device).synchronize() if hosted() else cuda.synchronize(device)


def _let_the_gpu_finish():
    """Who leaves an MPS server with work in flight may take others along (MPS guide, client early termination)."""
    try:
        synchronise()
    except RuntimeError:
        pass  # CUDA is broken, and nobody measures this member any more


def _end():
    """Leave at once, and take data-loader workers along: what is left behind would be reported as such."""
    multiprocessing = sys.modules.get("multiprocessing")
    for child in multiprocessing.active_children() if multiprocessing else ():
        child.kill()
    os._exit(0)


def _versions():
    """What the script has imported by now; asking costs no import."""
    names = [name for name in LIBRARIES if name in sys.modules]
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, **{name: str(sys.modules[name].__version__) for name in names}}


def _kind(error):
    return _judge(error, _card_memory())[0]


def _judge(error, memory):
    """The kind of an error and, where memory ran out, whose: the `card`'s, the `host`'s, or `either` where nobody can tell."""
    if isinstance(error, DataError):
        return "data", None
    if isinstance(error, SettingError):
        return "setting", None
    whose = _whose_memory(error, memory)
    return "out_of_memory" if whose else "other", whose


def _whose_memory(error, memory):
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "host"
    said = f"{type(error).__name__}: {error}".lower()
    for entry in _out_of_memory_texts():
        # What is only a symptom has other causes too, unless little is free.
        if _is_meant(entry["text"], said) and (entry["sure"] or _little_is_free(memory)):
            return entry["whose"]
    return "either" if type(error).__name__ == "OutOfMemoryError" else None


def _is_meant(text, said):
    """Whether a text of the list is said. The name of an exception stands before what it says, or alone; else it is only spoken of."""
    if text.endswith("Error") and " " not in text:
        return re.search(re.escape(text.lower()) + r"(:|$)", said) is not None
    return text.lower() in said


def _out_of_memory_texts():
    """The list that collo reads as well. Without it the type of an exception has to do."""
    try:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "out_of_memory.jsonl"), encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except (OSError, ValueError, MemoryError):
        return []


def _card_memory():
    """What the card and torch's allocator say of memory at this moment; None for what they do not tell, or cannot."""
    memory = dict.fromkeys(("free_bytes", "total_bytes", "allocated_bytes", "reserved_bytes"))
    torch = sys.modules.get("torch")
    try:
        if torch and torch.cuda.is_initialized():
            if not hosted():  # there it is the allocator of several members
                memory["allocated_bytes"], memory["reserved_bytes"] = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
            memory["free_bytes"], memory["total_bytes"] = torch.cuda.mem_get_info()
    except Exception:
        pass  # a torch that is half imported, a card that is lost: the error itself is still to be told
    return memory


def _little_is_free(memory):
    free, total = memory["free_bytes"], memory["total_bytes"]
    return free is not None and total is not None and free < max(512 << 20, 0.02 * total)
