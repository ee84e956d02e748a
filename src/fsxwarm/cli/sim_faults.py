"""What `fsxwarm sim --fault` may be told: `stuck:5%`, `access-denied:1%:2`, `hang:0.1%`."""

from __future__ import annotations

from typing import Final

from fsxwarm.model.units import parse_share
from fsxwarm.sim.faults import CallFault, Fault, Faults, share_of_calls, share_of_files

_FILES: Final = {fault.replace(" ", "-"): fault for fault in Fault}
_CALLS: Final = {fault.replace(" ", "-"): fault for fault in CallFault}
_ALWAYS: Final = 10**9


def add_fault(faults: Faults, wish: str, *, seed: int) -> None:
    """Add the rule that is wished for; another seed chooses other files. ValueError says what is wrong with it."""
    name, _, rest = wish.partition(":")
    share, limited, tries = rest.partition(":")
    if name in _FILES:
        most = _tries(tries) if limited else _ALWAYS
        faults.restore.append(share_of_files(parse_share(share), _FILES[name], seed=seed, tries=most))
    elif name in _CALLS and not limited:
        faults.call.append(share_of_calls(parse_share(share), _CALLS[name], seed=seed))
    elif name in _CALLS:
        raise ValueError(f"calls have a share and nothing behind it: write {name}:{share}")
    else:
        raise ValueError(f"{name!r} is no fault: there are {', '.join([*_FILES, *_CALLS])}")


def _tries(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is no number of restores: write 1 or more, or nothing for all")
    return int(text)
