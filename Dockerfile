# `discreet serve`, as nobody, with nothing to write to. Build it in a clone, and run it so:
#   docker build -t discreet .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges \
#     --memory 2g --pids-limit 128 -p 127.0.0.1:8000:8000 \
#     -v "$PWD/releases:/releases:ro" -v "$PWD/tokens:/run/tokens:ro" \
#     discreet /releases/memory.safetensors --token-file /run/tokens
FROM python:3.11-slim AS built
WORKDIR /source
COPY pyproject.toml README.md LICENSE CHANGELOG.md constraints.txt ./
COPY src src
COPY benchmarks/discreet_benchmarks benchmarks/discreet_benchmarks
RUN python -m venv /opt/discreet \
    && /opt/discreet/bin/pip install --no-cache-dir -c constraints.txt '.[serve,sklearn,parquet,text]'

FROM python:3.11-slim
COPY --from=built /opt/discreet /opt/discreet
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin discreet
USER 10001:10001
# One thread for each answer: the server computes several at a time. And no file is ever written.
ENV OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s CMD ["/opt/discreet/bin/python", "-c", \
    "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["/opt/discreet/bin/discreet", "serve", "--host", "0.0.0.0", "--port", "8000"]
