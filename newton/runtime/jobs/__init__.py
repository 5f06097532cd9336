"""Background jobs: their schedules, the queue that several workers share by leases, and the worker."""
