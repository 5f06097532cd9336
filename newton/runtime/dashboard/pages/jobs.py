"""The page of jobs: their schedule, what their last runs did and why, and a button to run each now."""

from starlette.responses import Response

from newton.runtime.dashboard.page_request import PageRequest, PageTable

JOBS = "/dashboard/jobs"


async def list_jobs(page: PageRequest) -> Response:
    """Show the jobs with their last runs."""
    return page.render("jobs.html", jobs=(await page.api.get("/v1/jobs"))["items"])


async def run_job(page: PageRequest) -> Response:
    """Queue a run of a job now."""
    name = page.path("name")
    await page.api.post(f"/v1/jobs/{name}/run")
    return page.redirect(JOBS, f"{name} is queued and runs now. Reload the page to see its result.")


ROUTES: PageTable = (("GET", JOBS, list_jobs), ("POST", f"{JOBS}/{{name}}/run", run_job))
