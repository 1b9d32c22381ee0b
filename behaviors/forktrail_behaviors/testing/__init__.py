"""For tests of behaviors: drive a pack on a log in memory, with fixture answers and its own clock, and try it hard.

kit = Kit(PACK)
kit.tell(ObjectCreated, object_type="Company", object_id="company-00000001", data='{"name": "Acme"}')
kit.run()
assert [one["text"] for one in kit.objects("Question")] == ["What does Acme sell?"]
"""

from forktrail_behaviors.testing.fixtures import FixtureModel, tool_calls
from forktrail_behaviors.testing.kit import Kit
from forktrail_behaviors.testing.pack_check import Checked, check_pack
from forktrail_behaviors.testing.simulator import Unsteady, simulate

__all__ = ["Checked", "FixtureModel", "Kit", "Unsteady", "check_pack", "simulate", "tool_calls"]
