"""Training of the transformer of `newton.providers.local.pair_reader`, in an environment of its own with PyTorch."""
