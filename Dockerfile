# `mote serve` in a container:
#   docker build -t mote .
#   docker run --rm -p 8080:8080 -v ./qwen3.mote:/models/model.mote:ro -e MOTE_API_KEY=secret mote
# A wheel in dist/ is installed if there is one, else what the registry has: MOTE=mote-llm==0.1.0 chooses a version.
FROM python:3.12-slim
ARG MOTE=mote-llm
COPY LICENSE dist* /tmp/dist/
RUN pip install --no-cache-dir --find-links /tmp/dist "$MOTE" && rm -rf /tmp/dist && useradd --create-home mote
USER mote
WORKDIR /models
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=4)"]
ENTRYPOINT ["mote", "serve", "--host", "0.0.0.0"]
CMD ["model.mote"]
