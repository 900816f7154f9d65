# The OpenTelemetry Collector with what our configurations name, built from the manifest that the tests build it from.
FROM golang:1.26-bookworm AS build
WORKDIR /build
COPY collector/builder.yaml ./collector/builder.yaml
RUN release="$(awk '/^  version:/ { print "v" $2 }' collector/builder.yaml)" \
    && CGO_ENABLED=0 go run "go.opentelemetry.io/collector/cmd/builder@${release}" --config collector/builder.yaml

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --no-create-home otelcol \
    && install --directory --owner=otelcol --mode=0700 /var/lib/otelcol/queue
COPY --from=build /build/.collector/otelcol-spanreel /usr/local/bin/otelcol
COPY collector/otelcol*.yaml /etc/otelcol/
USER 10001
VOLUME /var/lib/otelcol/queue
EXPOSE 4317 4318 13133
# There is no client for HTTP in the image; bash opens a connection by itself.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/13133 && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && head -1 <&3 | grep -q 200"]
ENTRYPOINT ["/usr/local/bin/otelcol"]
CMD ["--config", "/etc/otelcol/otelcol.yaml"]
