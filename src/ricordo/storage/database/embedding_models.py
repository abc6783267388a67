"""Which embedding models a store has vectors of, and the change from one to another."""

from __future__ import annotations

from ricordo.storage import faults
from ricordo.storage.database.reader import Snapshot
from ricordo.storage.values import EmbeddingModel, ModelState

_DROP_ROWS = 2_000

CENTRE_LEAST = 50
CENTRE_MOST = 20_000


def known_models(snapshot: Snapshot) -> list[EmbeddingModel]:
    """All of them, oldest first."""
    return snapshot.once(
        ("known_models",),
        lambda: [
            EmbeddingModel(key=key, name=name, dimension=dimension, spec=spec, state=state)
            for key, name, dimension, spec, state in snapshot.rows("models_known")
        ],
    )


def adopt(snapshot: Snapshot, *, name: str, dimension: int, spec: str) -> EmbeddingModel:
    """Make an embedder the store's. The first one is active at once; a later one comes while the old still answers."""
    models = known_models(snapshot)
    mine = next((model for model in models if (model.name, model.dimension) == (name, dimension)), None)
    active = next((model for model in models if model.state == "active"), None)
    state: ModelState = "active" if active is None or active == mine else "coming"
    for model in models:
        if model.state == "coming" and model != mine:
            snapshot.rows("model_state", {"key": model.key, "state": "retiring"})
    if mine is None:
        values = {"name": name, "dimension": dimension, "spec": spec, "state": state}
        key = snapshot.value("model_insert", values)
        faults.reached("model: adopted")
        return EmbeddingModel(key=key, name=name, dimension=dimension, spec=spec, state=state)
    if mine.state != state:
        note_progress(snapshot, mine.key, 0, 0)  # some of its vectors may be dropped already
        snapshot.rows("model_state", {"key": mine.key, "state": state})
    return EmbeddingModel(key=mine.key, name=name, dimension=dimension, spec=spec, state=state)


def switch(snapshot: Snapshot, coming: int) -> bool:
    """Make a coming model the active one, if nothing lacks its vector any more. Returns whether it is active."""
    if snapshot.rows("lacking", {"model": coming, "after": 0, "most": 1}):
        return False
    faults.reached("model: before switch")
    for model in known_models(snapshot):
        if model.state == "active" and model.key != coming:
            snapshot.rows("model_state", {"key": model.key, "state": "retiring"})
            faults.reached("model: in switch")
    snapshot.rows("model_state", {"key": coming, "state": "active"})
    return True


def progress(snapshot: Snapshot, model: int) -> tuple[int, int, tuple[int, int]]:
    """Up to which node, and as of which removal, everything had its vector: (node, removal, both)."""
    after, _, removals = (snapshot.meta(_progress_name(model)) or "0,0").partition(",")
    return int(after), int(removals), (int(after), int(removals))


def note_progress(snapshot: Snapshot, model: int, after: int, removals: int) -> None:
    """Remember it for the next opening."""
    snapshot.rows("meta_put", {"name": _progress_name(model), "value": f"{after},{removals}"})


def _progress_name(model: int) -> str:
    return f"vectors of model {model} made through node, removal"


def lost_since(snapshot: Snapshot, removal: int) -> tuple[int, int | None]:
    """The latest removal, and the first node that lost a vector after the one given."""
    newest, least = snapshot.rows("removals_since", {"after": removal})[0]
    if removal + 1 < dropped_below(snapshot):  # what was lost in between nobody can tell: all is looked at again
        least = 1
    return max(removal, newest or 0), least


_DROPPED = "removals dropped below"


def drop_removals(snapshot: Snapshot) -> int:
    """Forget what left the live indexes so long ago that whoever opens the store now has no need of it; how many rows
    that were. A process that still was behind begins anew (`dropped_below`).
    """
    noted = [progress(snapshot, model.key)[1] for model in known_models(snapshot)]
    before = snapshot.value("removals_needed", {"least": min(noted, default=1 << 62)})
    if before is None or before <= dropped_below(snapshot):
        return 0
    snapshot.rows("removals_drop", {"before": before})
    gone = int(snapshot.connection.changes())
    snapshot.rows("meta_put", {"name": _DROPPED, "value": str(before)})
    return gone


def dropped_below(snapshot: Snapshot) -> int:
    """Below which removal there is nothing to read any more."""
    return int(snapshot.meta(_DROPPED) or 0)


def centres_due(snapshot: Snapshot, model: int) -> list[tuple[int, str]]:
    """(space, shelf) of what has grown by a third since the mean of its vectors was taken."""
    values = {"model": model, "least": CENTRE_LEAST, "most": CENTRE_MOST}
    return [(space, shelf) for space, shelf in snapshot.rows("centres_due", values)]


def drop_retired(snapshot: Snapshot) -> bool:
    """Delete some vectors of retired models; call again while it returns True. Short, so that others can write.
    A model goes in a step of its own: the files of a folder name it where they say which vectors went.
    """
    retired = [model.key for model in known_models(snapshot) if model.state == "retiring"]
    for key in retired:
        snapshot.rows("model_packs_drop", {"model": key})
        snapshot.rows("model_removals_drop", {"model": key})
        snapshot.rows("model_drop", {"model": key})
        snapshot.rows("model_vectors_drop", {"model": key, "most": _DROP_ROWS})
        faults.reached("model: in dropping")
    return bool(retired)
