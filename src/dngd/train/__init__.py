"""Training runs: where they live on disk, what they remember, how they survive being killed."""
