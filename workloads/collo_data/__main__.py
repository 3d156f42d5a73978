"""Data sets, real and synthetic: check them, write stand-ins, list what there is. Also as `collo data …`.

Exit status: 0 fine, 1 the check says no, 2 wrong usage, 3 nothing is there or nothing can be written.
"""

import argparse
import json
import signal
import sys

import collo_data
from collo import DataError, SettingError
from collo_data.place import find, note_of, shown
from collo_data.stand_in import SEED


def check(arguments):
    findings = collo_data.check(arguments.name, arguments.folder)
    print(json.dumps(findings.as_dict()) if arguments.json else findings)
    return 0 if findings.ok else 1


def synthesize(arguments):
    words = {"seed": arguments.seed, "format": arguments.format}
    place = collo_data.synthesize(arguments.name, arguments.scale, arguments.to, **words)
    note, title = note_of(place.folder), collo_data.known_as(arguments.name).title
    if arguments.json:
        where = {"synthetic": True, "written": place.written, "where": shown(place.folder)}
        print(json.dumps({"schema": 1, "dataset": title, **note, **where}))
        return 0
    counts = ", ".join(f"{count:,} to {split}" for split, count in note["counts"].items())
    done = "wrote a synthetic" if place.written else "there is already this synthetic"
    print(f"{done} {title} in `{shown(place.folder)}`: {counts}; {note['format']} format, seed {note['seed']}")
    return 0


def prepare(arguments):
    print(json.dumps(collo_data.prepare(arguments.name)))
    return 0


def list_(arguments):
    known = [(name, collo_data.known_as(name), find(name)) for name in collo_data.SETS]
    if arguments.json:
        sets = [
            {
                "name": name, "title": known.title, "formats": known.formats, "splits": known.splits,
                "published": known.published, "where": shown(place.folder) if place else None,
                "synthetic": place.synthetic if place else None,
            }
            for name, known, place in known
        ]  # fmt: skip
        print(json.dumps({"schema": 1, "data_sets": sets}))
        return 0
    for name, known, place in known:
        counts = ", ".join(f"{count:,} {split}" for split, count in known.published.items())
        where = f"`{shown(place.folder)}`" + (", synthetic" if place.synthetic else "") if place else "not here"
        print(f"{name:<11} {known.title:<11} {'|'.join(known.formats):<14} {where}\n{'':<11} {counts}")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="collo data", description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(run, name, help):
        added = verbs.add_parser(name, help=help, description=help)
        added.set_defaults(run=run)
        return added

    checked = verb(check, "check", "compare a data set with what is published, or a stand-in with its note")
    checked.add_argument("name", metavar="NAME")
    checked.add_argument("folder", metavar="DIR", nargs="?", help="where it lies; else data/NAME or its stand-in")
    checked.add_argument("--json", action="store_true")
    written = verb(synthesize, "synthesize", "write a seeded, learnable stand-in in the format of the real data")
    written.add_argument("name", metavar="NAME")
    written.add_argument("--scale", type=float, metavar="S", help="size, 1 is that of the real data")
    written.add_argument("--to", metavar="DIR", help="where to; else data/synthetic/NAME")
    written.add_argument("--seed", type=int, default=SEED, metavar="N")
    written.add_argument("--format", metavar="F", help="of those that `list` names; else the first")
    written.add_argument("--json", action="store_true")
    prepared = verb(prepare, "prepare", "read what there is once before a campaign; prints a line of JSON")
    prepared.add_argument("name", metavar="NAME")
    listed = verb(list_, "list", "the data sets, their formats and sizes, and where they lie")
    listed.add_argument("--json", action="store_true")

    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that half a stand-in is removed
    try:
        return arguments.run(arguments)
    except (DataError, SettingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingError) else 3
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
