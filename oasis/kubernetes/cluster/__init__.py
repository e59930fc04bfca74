"""The cluster as it is: machines and their free capacity, pods and their owners."""
