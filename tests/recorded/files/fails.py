from baselines import FIFO


class Late(FIFO):
    """Fails where there are five jobs."""

    def decide(self, view):
        assert max([0, *(job.index for job in view.arrived)]) < 3, "bad luck"
        return super().decide(view)
