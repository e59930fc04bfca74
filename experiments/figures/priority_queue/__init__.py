"""What the priority-queue autoscaler does, procedure by procedure; its text has no figures."""
