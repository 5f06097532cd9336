"""The local models as fixtures."""

import pytest

from newton.cognition.frames.classifier import FrameClassifier
from newton.providers.minilm import MiniLM
from tests.unit.local_models import load_classifier, load_minilm


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    return load_minilm()


@pytest.fixture(scope="session")
def learned() -> FrameClassifier:
    return load_classifier()
