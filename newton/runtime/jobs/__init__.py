"""Background jobs: schedules, a shared queue with leases, and the worker."""
