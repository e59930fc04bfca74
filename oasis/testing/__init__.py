"""What tests of schedulers need: the contract that every policy keeps, and random inputs.

It needs the extra ``testing``, for Hypothesis.
"""

from oasis.extras import require

require("oasis.testing", "hypothesis")

from oasis.testing.policy_contract import CHECKS as CHECKS  # noqa: E402
from oasis.testing.policy_contract import check_policy as check_policy  # noqa: E402
from oasis.testing.strategies import clusters as clusters  # noqa: E402
from oasis.testing.strategies import crowded_instances as crowded_instances  # noqa: E402
from oasis.testing.strategies import forms as forms  # noqa: E402
from oasis.testing.strategies import instances as instances  # noqa: E402
from oasis.testing.strategies import instances_of_kinds as instances_of_kinds  # noqa: E402
from oasis.testing.strategies import jobs as jobs  # noqa: E402
from oasis.testing.strategies import of_kinds as of_kinds  # noqa: E402
from oasis.testing.strategies import small_instances as small_instances  # noqa: E402
from oasis.testing.strategies import utilities as utilities  # noqa: E402
from oasis.testing.strategies import workloads as workloads  # noqa: E402
from oasis.testing.strategies import worlds as worlds  # noqa: E402
