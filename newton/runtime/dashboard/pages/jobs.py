"""The pages of jobs: their schedule, their runs with results and reasons, and a button to run each now."""

from starlette.responses import Response

from newton.runtime.dashboard.api_client import gather_json
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.jobs.schedule import NEXT_SLOT

JOBS = "/dashboard/jobs"
MAX_RUNS = 50


async def list_jobs(page: PageRequest) -> Response:
    """Show the jobs with their last runs."""
    return page.render("jobs.html", jobs=(await page.api.get("/v1/jobs"))["items"], usual_reason=NEXT_SLOT)


async def show_job(page: PageRequest) -> Response:
    """Show one job with its latest runs."""
    name = page.path("name")
    runs, jobs = await gather_json(
        page.api.get(f"/v1/jobs/{name}/runs", limit=MAX_RUNS), page.api.get("/v1/jobs")
    )  # an unknown name is an error of the first
    (job,) = [one for one in jobs["items"] if one["name"] == name]
    return page.render("job.html", job=job, runs=runs["items"])


async def run_job(page: PageRequest) -> Response:
    """Queue a run of a job now, and redirect to the job."""
    name = page.path("name")
    await page.api.post(f"/v1/jobs/{name}/run")
    return page.redirect(f"{JOBS}/{name}", f"{name} is queued and runs now. Reload the page to see its result.")


ROUTES: PageTable = (
    ("GET", JOBS, list_jobs),
    ("GET", f"{JOBS}/{{name}}", show_job),
    ("POST", f"{JOBS}/{{name}}/run", run_job),
)
