"""What a scheduling problem is: jobs, servers, utilities and schedules, and its file."""
