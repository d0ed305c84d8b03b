"""A site on loopback for the tests next to this file."""

import http.server


class Page(http.server.BaseHTTPRequestHandler):
    """Answers with HTML and writes no log."""

    def answer(self, data, status=200):
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass
