"""Sends wrong passwords to a foxy beside a good user. Arguments: the program, and the number of tries."""
import asyncio, base64, json, os, subprocess, sys, tempfile, threading, time, http.server, random, socket
binary, tries = sys.argv[1], int(sys.argv[2])
folder = tempfile.mkdtemp()
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b"x" * 1000
        self.send_response(200); self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=origin.serve_forever, daemon=True).start()
for name in ["ann"] + [f"user{n}" for n in range(30)]:
    subprocess.run([binary, "user", "add", folder + "/users", name], input=b"open sesame\n", stderr=subprocess.DEVNULL, check=True)
sock = socket.socket(); sock.bind(("127.0.0.1", 0)); port = sock.getsockname()[1]; sock.close()
foxy = subprocess.Popen([binary, "serve", "--workers", "2", "--memory", "8M", "--size", "64M", "--listen", f"127.0.0.1:{port}",
    "--admin", "off", "--allow-destination", "127.0.0.0/8", "--access-log-format", "json", "--access-log", folder + "/log",
    "--users-file", folder + "/users", "--store", folder + "/store"], stderr=open(folder + "/messages", "w"), env={})
time.sleep(3)
url = f"http://127.0.0.1:{origin.server_port}/page"
def request(user, password):
    field = "" if user is None else "Proxy-Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode() + "\r\n"
    return f"GET {url} HTTP/1.1\r\nHost: a\r\n{field}\r\n".encode()
def connect(address):
    s = socket.create_connection(("127.0.0.1", port), source_address=(address, 0)); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); return s
def ask(s, data):
    s.sendall(data); got = b""
    while b"\r\n\r\n" not in got: got += s.recv(65536)
    head, body = got.split(b"\r\n\r\n", 1)
    length = int([l for l in head.lower().split(b"\r\n") if l.startswith(b"content-length")][0].split(b":")[1])
    while len(body) < length: body += s.recv(65536)
    return int(head.split()[1])
def cpu():
    f = open(f"/proc/{foxy.pid}/stat").read().rsplit(") ")[1].split(); return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")
def measure(name, subject, value, unit): print(json.dumps({"kind": "measure", "name": name, "subject": subject, "value": value, "unit": unit, "repeats": 1}), flush=True)
async def guesser(user, count, answers):
    numbers = iter(range(count)); begun = time.monotonic()
    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.3", 0))
        for n in numbers:
            await asyncio.sleep(max(0, begun + n / 1000 - time.monotonic()))
            writer.write(request(user, f"wrong-password-{n}"))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int([l for l in head.lower().split(b"\r\n") if l.startswith(b"content-length")][0].split(b":")[1])
            await reader.readexactly(length)
            answers[int(head.split()[1])] = answers.get(int(head.split()[1]), 0) + 1
    await asyncio.gather(*(one() for _ in range(200)))
def phase(subject, user, count, alone):
    """The good user is another process, so that the guesser does not slow it."""
    answers, first = {}, []
    pipe = os.pipe(); stop = os.pipe(); child = os.fork()
    if child == 0:
        os.nice(-5); times, failed = [], 0; s = connect("127.0.0.2"); os.set_blocking(stop[0], False)
        while True:
            try: os.read(stop[0], 1); break
            except BlockingIOError: pass
            time.sleep(0.005 * random.random()); began = time.perf_counter(); failed += ask(s, request("ann", "open sesame")) != 200; times.append(time.perf_counter() - began)
        times.sort(); os.write(pipe[1], json.dumps([len(times), failed] + [times[int(len(times) * q)] * 1e6 for q in (.5, .99, .999)]).encode()); os._exit(0)
    used, began = cpu(), time.monotonic()
    def firsts():
        for n in range(30):
            time.sleep(0.3); t = time.perf_counter(); status = ask(connect(f"127.0.1.{n + 1}"), request(f"user{n}", "open sesame")); first.append((time.perf_counter() - t, status))
    thread = threading.Thread(target=firsts)
    if user: thread.start()
    if count: asyncio.run(guesser(user, count, answers))
    else: time.sleep(alone)
    if user: thread.join()
    share = (cpu() - used) / (time.monotonic() - began)
    os.write(stop[1], b"x"); result = json.loads(os.read(pipe[0], 4096)); os.waitpid(child, 0)
    for name, value in zip(["good_requests", "failed_good_requests", "good_user_p50_us", "good_user_p99_us", "good_user_p999_us"], result): measure(name, subject, value, "us" if name.endswith("us") else "count")
    measure("processor_share_of_foxy", subject, share, "share")
    for status, number in answers.items(): measure(f"answers_{status}", subject, number, "count")
    if first:
        times = sorted(t for t, _ in first); measure("first_requests_of_other_users_p50_ms", subject, times[len(times) // 2] * 1e3, "ms"); measure("first_requests_of_other_users_max_ms", subject, times[-1] * 1e3, "ms")
        measure("failed_first_requests", subject, sum(s != 200 for _, s in first), "count")
phase("warm-up", None, 0, 2)
phase("alone", None, 0, 15)
phase("requests without credentials", None, tries, 0)
phase("wrong passwords", "ann", tries, 0)
s, times = connect("127.0.0.3"), {"ann": [], "bob": []}
for n in range(int(sys.argv[3])):
    for user in random.sample(["ann", "bob"], 2):
        data = request(user, f"wrong-password-t{n}"); t = time.perf_counter(); assert ask(s, data) == 407; times[user].append(time.perf_counter() - t)
for user, values in times.items():
    values.sort()
    for name, q in (("p5", .05), ("p50", .5), ("p95", .95)): measure(f"time_of_refusal_{name}_us", {"ann": "known user", "bob": "unknown user"}[user], values[int(len(values) * q)] * 1e6, "us")
import bisect
a, b = times["ann"], times["bob"]
distance = max(abs(bisect.bisect_right(a, x) / len(a) - bisect.bisect_right(b, x) / len(b)) for x in a + b)
measure("largest_difference_of_distributions", "foxy", distance, "share"); measure("difference_by_chance_1_in_1000", "foxy", 1.95 * (2 / len(a)) ** .5, "share")
foxy.terminate(); foxy.wait()
text = open(folder + "/log").read() + open(folder + "/messages").read()
assert '"user":"ann"' in text
secrets = ["wrong-password", "open sesame", base64.b64encode(b"ann:wrong-password-").decode()[:20], base64.b64encode(b"ann:open sesame").decode()]
measure("lines_of_logs", "foxy", text.count("\n"), "count"); measure("passwords_in_logs", "foxy", sum(text.count(x) for x in secrets), "count")
