"""skillc as a DSPy optimizer, for any module with predictors."""

from skillc.teleprompter.optimizer import SkillOptimizer, SkillReport

__all__ = ["SkillOptimizer", "SkillReport"]
