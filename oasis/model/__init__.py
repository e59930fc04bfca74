"""The scheduling problem: jobs, servers, utilities, schedules, and the file format."""
