"""Training of the transformer of `newton.providers.minilm`, in an environment of its own with PyTorch."""
