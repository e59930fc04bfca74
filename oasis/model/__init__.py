"""What a scheduling problem is: jobs, servers, utilities, schedules, and the instance file."""
