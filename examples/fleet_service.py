"""Forecasts of many keys over HTTP: one fleet, one process, standard library only.

    python fleet_service.py FOLDER --port 8000
    curl localhost:8000/run -d '[["tea", 10.0], ["milk", 20.0]]'     # observations; returns the forecasts made before
    curl localhost:8000/predict -d '["tea", "milk"]'

Answers come after their rows are on disk: killed at any time and started again, the service has learned every row that
it answered, and no row twice if clients do not send answered rows again. With --fast answers come before: rows are not
written one by one, the whole fleet is, every --every seconds, and a crash loses the rows since then.
"""

import argparse
import json
import pathlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import thalweg as tw
from thalweg.estimators import Forecaster


def main():
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between checkpoints")
    parser.add_argument("--fast", action="store_true", help="answer before rows are on disk")
    given = parser.parse_args()
    file, lock = given.folder / "fleet.bytes", threading.Lock()
    if given.fast:
        given.folder.mkdir(parents=True, exist_ok=True)
        fleet = tw.Fleet.from_bytes(Forecaster(), file.read_bytes()) if file.exists() else tw.Fleet(Forecaster())
    else:
        new = not (given.folder / "MANIFEST").exists()
        fleet = tw.Fleet(Forecaster(), folder=given.folder) if new else tw.Fleet.open(given.folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:  # one batch at a time
                    said = fleet.run(*zip(*rows, strict=True)) if self.path == "/run" else fleet.predict(rows)
                code, body = 200, [None if value != value else value for value in said.tolist()]
            except (ValueError, TypeError) as error:
                code, body = 400, str(error)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

    def checkpoints():
        while True:
            time.sleep(given.every)
            with lock:
                (file.with_suffix(".new").write_bytes(fleet.to_bytes()) if given.fast else fleet.checkpoint())
                if given.fast:
                    file.with_suffix(".new").replace(file)

    threading.Thread(target=checkpoints, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
