# `spanreel serve`, with what the lock file says and nothing else. Runs as a user without rights, and writes to /data only.
FROM python:3.11-slim-bookworm AS build
WORKDIR /build
COPY requirements/uv.txt requirements/dev.txt requirements/service.txt ./requirements/
RUN python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt \
    && uv venv /opt/spanreel \
    && uv pip sync --python /opt/spanreel/bin/python --require-hashes requirements/service.txt
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY collector/spanreel_collector ./collector/spanreel_collector
RUN uv pip install --python /opt/spanreel/bin/python --no-deps --build-constraints requirements/dev.txt . \
    && /opt/spanreel/bin/spanreel --version

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10002 --no-create-home spanreel \
    && install --directory --owner=spanreel --mode=0700 /data
COPY --from=build /opt/spanreel /opt/spanreel
ENV PATH=/opt/spanreel/bin:$PATH PYTHONUNBUFFERED=1 \
    SPANREEL_SERVE_HTTP=0.0.0.0:4318 SPANREEL_SERVE_GRPC=0.0.0.0:4317 SPANREEL_STORE=sqlite:////data/spanreel.db \
    SPANREEL_SERVE_LOG_FORMAT=json
USER 10002
VOLUME /data
EXPOSE 4317 4318
# Who has it speak TLS may have it ask for certificates too, of which there is none here: then it is to listen.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import os, socket, urllib.request as r; os.environ.get('SPANREEL_SERVE_TLS_CERTIFICATE') and socket.create_connection(('127.0.0.1', 4318), 2) or r.urlopen('http://127.0.0.1:4318/readyz', timeout=2)"]
ENTRYPOINT ["spanreel"]
CMD ["serve"]
