"""Adapters for agent frameworks. Each module needs the optional dependencies of its name: newton-client[NAME]."""
