"""Memory of the GPU instances that the members of a run have."""

import tomllib
from pathlib import Path

PROFILES = Path(__file__).resolve().parents[4] / "mig-profiles"


def memory(run):
    """Bytes; None where an instance is not known."""
    of_members = [profile_bytes(run.record["device"]["name"], m.get("slice")) for m in run.record["members"]]
    if None in of_members:
        return None
    mode = run.cell["mode"]
    if mode["isolated"]:
        return sum(of_members)
    if not mode["mps"]:
        # Compute instances are those of one GPU instance.
        return of_members[0]
    seen = [(m.get("hello") or {}).get("device") for m in run.record["members"]]
    return None if None in seen else sum(dict(zip(seen, of_members)).values())


def profile_bytes(product, profile):
    if profile is None:
        return None
    bare = lambda name: name.strip().removeprefix("NVIDIA ")
    for file in sorted(PROFILES.glob("*.toml")):
        model = tomllib.loads(file.read_text())
        if bare(product) in map(bare, model.get("product_names", [])):
            # A compute instance has the memory of its GPU instance.
            name = profile.split("c.", 1)[-1]
            found = [p.get("memory_gib") for p in model["profiles"] if p["name"] == name]
            return found[0] * 2**30 if found and found[0] is not None else None
    return None
