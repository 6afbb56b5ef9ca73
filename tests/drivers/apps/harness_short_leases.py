"""The callback of harness_app in a harness whose leases are short."""

from tests.drivers.apps.harness import act
from treadle.services import harness

__all__ = ["act"]

harness.LEASE_S = 4.0
