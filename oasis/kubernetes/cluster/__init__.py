"""What is there: machines and what is free on them, pods and whose they are."""
