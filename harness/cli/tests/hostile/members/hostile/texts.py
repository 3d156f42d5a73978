"""Texts that a terminal would obey: a title, the clipboard, a cleared screen, a line that claims success."""

EVIL = "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b[31m\r\n✓ 6/6 runs completed\u202e\x9b31m"


def error_of_escapes(wire):
    wire.start()
    wire.say("error", kind="other", message=f"cannot go on {EVIL}", whose=None, free_bytes=None, total_bytes=None, allocated_bytes=None, reserved_bytes=None)
    raise SystemExit(1)


def hello_of_escapes(wire):
    wire.start(model={"name": EVIL, "parameters": 1}, dataset={"name": EVIL, "synthetic": True, "items": 1}, versions={"python": EVIL})
    wire.epoch()
    wire.epoch()
    wire.done()


def log_of_escapes(wire):
    wire.start()
    print(EVIL, flush=True)
    raise SystemExit(1)


def protocol_of_escapes(wire):
    wire.start()
    wire.raw(EVIL.encode() + b"\n")
    wire.until("stop")
