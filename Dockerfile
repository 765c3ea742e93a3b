# syntax=docker/dockerfile:1
# The service, with the embedded stores for a single container: docker run -v data:/data -p 3000:3000 …
# For several, see compose.yaml and docs/cluster.md.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY . .
RUN --mount=type=cache,target=/root/.npm \
    --mount=type=cache,target=/root/.bun/install/cache \
    npx --yes bun run setup --production --service

FROM node:24-bookworm-slim
WORKDIR /app
COPY --from=build /app /app
RUN mkdir /data && chown node:node /data
# As in the script `start` of package.json, which also installs packages.
ENV NODE_ENV=production \
    MIMALLOC_PURGE_DELAY=10000 \
    BUN_CONFIG_MAX_HTTP_REQUESTS=10000 \
    GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824 \
    HOST=0.0.0.0 \
    PORT=3000 \
    DATA_DIR=/data
USER node
VOLUME /data
EXPOSE 3000
# Requests are answered and flushed within 10 s.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node_modules/.bin/bun", "src/main.ts"]
