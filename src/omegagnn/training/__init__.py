"""Training: configurations, the engine with its run axis, selection rules, the journal, checkpoints."""
