"""The program's own target as an LM, for users who configured none."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import dspy

from skillc.models.client import Client
from skillc.models.dspy_lm import make_lm
from skillc.plan.schema import BudgetPlan, Plan


class OwnTarget:
    """Gives the settings under which a loaded program answers: DSPy's own where an LM is configured, else the plan's.

    The budget is for compiling and does not bind here. The client is made at the first call; `root` is the program's
    folder.
    """

    def __init__(self, plan: Plan, root: Path | None = None) -> None:
        self._plan = plan
        self._root = root
        self._lock = threading.Lock()
        self._settings: dict[str, Any] | None = None

    def settings(self, own_lm: Any) -> dict[str, Any]:
        """Overrides for `dspy.context`; none where the predictor or DSPy has an LM.

        Raises:
            SkillcError: the target's key or address is missing.
        """
        if own_lm is not None or dspy.settings.lm is not None:
            return {}
        with self._lock:
            if self._settings is None:
                client = Client(self._plan.model_copy(update={"budget": BudgetPlan()}), root=self._root)
                adapter = dspy.settings.adapter or dspy.ChatAdapter(use_json_adapter_fallback=False)
                self._settings = {"lm": make_lm(client, "target"), "adapter": adapter}
            return self._settings

    def __deepcopy__(self, memo: dict[int, Any]) -> OwnTarget:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"_plan": self._plan, "_root": self._root}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_plan"], state["_root"])  # type: ignore[misc]
