"""Search for settings on validation: spaces, studies on Optuna whose trials train as batches, winners as presets."""
