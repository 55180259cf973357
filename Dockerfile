# The service in a small image: docker build -t meta-agent-rag . && docker run -p 127.0.0.1:8000:8000 -v marag:/data meta-agent-rag
# Keys and addresses come as environment variables when it runs (see .env.example); none is in the image.

FROM python:3.11-slim-trixie AS build
RUN pip install --no-cache-dir "uv>=0.13,<0.14"
WORKDIR /app
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV=/app/.venv
ARG EXTRAS="--extra embedded --extra servers --extra service --extra telemetry --extra mcp"
COPY pyproject.toml uv.lock ./
# torch without what a graphics card needs: several GB less, for the one export of an encoder
RUN --mount=type=cache,target=/root/.cache/uv \
    uv venv \
    && uv export --frozen --quiet --no-default-groups ${EXTRAS} --no-emit-project --prune torch -o requirements.txt \
    && uv pip install --no-deps --require-hashes -r requirements.txt \
    && uv pip install --torch-backend cpu torch
COPY README.md LICENSE ./
COPY docs/examples docs/examples
COPY benchmarks benchmarks
COPY backend backend
RUN --mount=type=cache,target=/root/.cache/uv uv pip install --no-deps .

FROM python:3.11-slim-trixie
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin marag \
    && install --directory --owner marag --group marag /data
COPY --from=build /app/.venv /app/.venv
ENV PATH=/app/.venv/bin:$PATH HOME=/data HF_HOME=/data/huggingface MARAG_DATA_DIR=/data PYTHONUNBUFFERED=1
WORKDIR /data
VOLUME /data
USER marag
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
ENTRYPOINT ["marag"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
