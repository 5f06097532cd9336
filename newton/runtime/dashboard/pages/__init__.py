"""The pages of the dashboard. Each module has its routes in `ROUTES`: method, path and function."""
