# Newton's daemon, for a PostgreSQL server with pgvector at DATABASE_URL. Everything else is in the image: nothing is
# fetched when it runs.
#   docker build -t newton . && docker compose up -d
FROM python:3.11-slim AS build
WORKDIR /src
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends binutils >/dev/null
COPY requirements/runtime.txt requirements/
RUN python -m venv --without-pip /opt/newton && \
    pip --python /opt/newton/bin/python install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY scripts/trim-environment scripts/
RUN sh scripts/trim-environment /opt/newton
COPY . .
RUN pip --python /opt/newton/bin/python install --no-cache-dir --no-deps .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/newton newton
COPY --from=build /opt/newton /opt/newton
ENV PATH=/opt/newton/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ORT_DISABLE_TELEMETRY=1 \
    NEWTON_DATA_DIR=/var/lib/newton/data
USER newton
WORKDIR /var/lib/newton
VOLUME /var/lib/newton
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8700/health/ready', timeout=2)"]
# Beyond its own network the container is reached through a proxy that speaks TLS.
ENTRYPOINT ["newton"]
CMD ["serve", "--host", "0.0.0.0", "--behind-proxy", "--log-format", "json"]
