# The image of all treadle processes; the command selects one. See docker-compose.yml.

FROM python:3.13-slim AS build
WORKDIR /source
RUN python -m venv /opt/treadle
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY pyproject.toml README.md LICENSE ./
COPY sql sql
COPY src src
RUN /opt/treadle/bin/pip install '.[artifacts,cron,fast,http,redis,schema,webhooks,yaml]'

FROM python:3.13-slim
ARG REVISION=unknown
LABEL org.opencontainers.image.title="treadle" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="$REVISION"
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin treadle \
  && install -d -o treadle -g treadle /run/treadle /var/lib/treadle
COPY --from=build /opt/treadle /opt/treadle
COPY examples /app/examples
ENV PATH=/opt/treadle/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TREADLE_LOG_FORMAT=json
WORKDIR /app
USER treadle
EXPOSE 8420
# A process updates its health file while it runs: an age over a minute means that it hangs. The file
# also shows when the database has not responded for three heartbeats. The server has no file: it is
# checked over HTTP.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
  CMD ["sh", "-c", "if test -e /run/treadle/health; then find /run/treadle/health -mmin -1 | grep -q . && ! grep -q no_database /run/treadle/health; else python -c 'import urllib.request as it; it.urlopen(\"http://127.0.0.1:8420/health\", timeout=4)'; fi"]
ENTRYPOINT ["treadle"]
CMD ["--help"]
