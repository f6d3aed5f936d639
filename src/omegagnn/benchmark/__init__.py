"""Speed and memory beside the peers: the same model on the same data in the same run, outputs compared before timing."""
