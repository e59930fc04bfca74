"""Objects of the API: how jobs, quantities and conditions are read and written."""
