"""The embedding models of a store, and the change from one to another."""

from __future__ import annotations

from ricordo.storage import faults
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import EmbeddingModel, ModelState

_DROP_ROWS = 2_000

CENTRE_LEAST = 50
CENTRE_MOST = 20_000


def _progress_name(model: int) -> str:
    return f"vectors of model {model} made through node, removal"


_DROPPED = "removals dropped below"


class EmbeddingModels:
    """The embedding models of a store, and the change from one to another."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def known(self) -> list[EmbeddingModel]:
        return self._sql.once(
            ("known_models",),
            lambda: [
                EmbeddingModel(key=key, name=name, dimension=dimension, spec=spec, state=state)
                for key, name, dimension, spec, state in self._sql.rows("models_known")
            ],
        )

    def adopt(self, *, name: str, dimension: int, spec: str) -> EmbeddingModel:
        models = self.known()
        mine = next((model for model in models if (model.name, model.dimension) == (name, dimension)), None)
        active = next((model for model in models if model.state == "active"), None)
        state: ModelState = "active" if active is None or active == mine else "coming"
        for model in models:
            if model.state == "coming" and model != mine:
                self._sql.rows("model_state", {"key": model.key, "state": "retiring"})
        if mine is None:
            values = {"name": name, "dimension": dimension, "spec": spec, "state": state}
            key = self._sql.value("model_insert", values)
            faults.reached("model: adopted")
            return EmbeddingModel(key=key, name=name, dimension=dimension, spec=spec, state=state)
        if mine.state != state:
            self.note_progress(mine.key, 0, 0)  # some of its vectors may be dropped already
            self._sql.rows("model_state", {"key": mine.key, "state": state})
        return EmbeddingModel(key=mine.key, name=name, dimension=dimension, spec=spec, state=state)

    def switch(self, coming: int) -> bool:
        if self._sql.rows("lacking", {"model": coming, "after": 0, "most": 1}):
            return False
        faults.reached("model: before switch")
        for model in self.known():
            if model.state == "active" and model.key != coming:
                self._sql.rows("model_state", {"key": model.key, "state": "retiring"})
                faults.reached("model: in switch")
        self._sql.rows("model_state", {"key": coming, "state": "active"})
        return True

    def progress(self, model: int) -> tuple[int, int, tuple[int, int]]:
        after, _, removals = (self._sql.meta(_progress_name(model)) or "0,0").partition(",")
        return int(after), int(removals), (int(after), int(removals))

    def note_progress(self, model: int, after: int, removals: int) -> None:
        self._sql.rows("meta_put", {"name": _progress_name(model), "value": f"{after},{removals}"})

    def lost_since(self, removal: int) -> tuple[int, int | None]:
        newest, least = self._sql.rows("removals_since", {"after": removal})[0]
        if removal + 1 < self.dropped_below():  # what was lost in between nobody can tell: all is looked at again
            least = 1
        return max(removal, newest or 0), least

    def drop_removals(self) -> int:
        noted = [self.progress(model.key)[1] for model in self.known()]
        before = self._sql.value("removals_needed", {"least": min(noted, default=1 << 62)})
        if before is None or before <= self.dropped_below():
            return 0
        self._sql.rows("removals_drop", {"before": before})
        gone = int(self._sql.connection.changes())
        self._sql.rows("meta_put", {"name": _DROPPED, "value": str(before)})
        return gone

    def dropped_below(self) -> int:
        return int(self._sql.meta(_DROPPED) or 0)

    def centres_due(self, model: int) -> list[tuple[int, str]]:
        values = {"model": model, "least": CENTRE_LEAST, "most": CENTRE_MOST}
        return [(space, shelf) for space, shelf in self._sql.rows("centres_due", values)]

    def drop_retired(self) -> bool:
        retired = [model.key for model in self.known() if model.state == "retiring"]
        for key in retired:
            self._sql.rows("model_packs_drop", {"model": key})
            self._sql.rows("model_removals_drop", {"model": key})
            self._sql.rows("model_drop", {"model": key})
            self._sql.rows("model_vectors_drop", {"model": key, "most": _DROP_ROWS})
            faults.reached("model: in dropping")
        return bool(retired)
