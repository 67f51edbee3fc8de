"""What the benchmarks share: layout, SkillOpt's splits, the loader, and the compile of all. See programs/README.md."""
