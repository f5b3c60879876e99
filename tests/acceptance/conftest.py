"""Streets of simulated providers, one for a module and one for a single test."""

import pytest
from tests.acceptance.street import Street


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    street = Street(tmp_path_factory.mktemp("street"))
    yield street
    street.close()


@pytest.fixture
def lane(tmp_path):
    """A street for one test, whose providers and gateway nobody else uses."""
    lane = Street(tmp_path)
    yield lane
    lane.close()
