"""By hand, what `--recipe` means: the values in the script's own `workload.toml`. Under collo all come as settings.

A parser and a folder go in, settings come out; what is given beside the recipe wins. Standard library only.
"""

import difflib
import os
import pathlib

from collo import SettingError


def settings_of(parser, folder, words=None):
    """The parsed settings. Under collo, which looks recipes up itself and passes every setting, nothing is changed."""
    settings = parser.parse_args(words)
    usual = parser.get_default("recipe")
    if settings.recipe == usual or os.environ.get("COLLO_MEMBER"):
        return settings
    recipes = read(pathlib.Path(folder) / "workload.toml")
    if settings.recipe not in recipes:
        known = [usual, *recipes]
        nearest = difflib.get_close_matches(settings.recipe, known, n=1, cutoff=0)[0]
        unknown = f"`recipe` is `{settings.recipe}`, nearest to it is `{nearest}`"
        raise SettingError(f"{unknown}: it is one of {', '.join(known)}")
    parser.set_defaults(**recipes[settings.recipe])
    return parser.parse_args(words)


def read(path):
    """The recipes of a `workload.toml`: {name: {setting: value}}."""
    try:
        import tomllib
    except ModuleNotFoundError as error:  # Python 3.10
        way_out = "give its settings instead, or let collo start the script"
        raise SettingError(f"`recipe` by hand needs Python 3.11, which reads `{path.name}`: {way_out}") from error
    return tomllib.loads(path.read_text(encoding="utf-8")).get("recipes", {})
