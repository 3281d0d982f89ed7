"""The parts of `scripts/bench-keepers`, which says what they are. Only what Python comes with."""

import base64
import contextlib
import glob
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ADMIT, ROOT = os.environ["ADMIT"], pathlib.Path(os.environ["ROOT"])
PATIENCE = 600
SPOKE, ADD_ON = "open-cluster-management-addon-observability", "observability-addon"
OBA = "/apis/observability.open-cluster-management.io/v1beta1"
CYNDI = "/apis/cyndi.cloud.redhat.com/v1alpha1"
missed = False


def number(name):
    return int(os.environ[name])


def tell(name, figure, unit, target):
    """A figure that must not be larger than its target."""
    global missed
    met = figure <= target
    missed = missed or not met
    print(f"figure: {name}: {figure:g} {unit} (target: at most {target:g}, {'met' if met else 'MISSED'})", flush=True)


def until(what, look):
    """What `look` brings, once it brings something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    sys.exit(f"gave up waiting for {what}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def memory(pid, field="VmRSS"):
    """Mebibytes, as the kernel counts them."""
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    sys.exit(f"no {field} of {pid}")


class Program:
    """`admit`, until the end of the part."""

    def __init__(self, folder, name, args):
        self.log = folder / f"{name}.log"
        self.began = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([ADMIT, *args], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)

    def until_said(self, text):
        def look():
            if self.process.poll() is not None:
                sys.exit(f"{ADMIT} ended:\n{self.log.read_text()}")
            return text in self.log.read_text()

        until(f"`{text}` in {self.log}", look)
        return time.monotonic() - self.began

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Api:
    """An API server, over connections that stay open."""

    def __init__(self, kubeconfig):
        view = ["kubectl", "config", "view", "--raw", "-o", "json", f"--kubeconfig={kubeconfig}"]
        config = json.loads(subprocess.run(view, check=True, capture_output=True).stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        text = lambda data: base64.b64decode(data).decode()
        self.address = cluster["server"].removeprefix("https://")
        self.tls = ssl.create_default_context(cadata=text(cluster["certificate-authority-data"]))
        with tempfile.NamedTemporaryFile("w") as pem:
            pem.write(text(user["client-certificate-data"]) + text(user["client-key-data"]))
            pem.flush()
            self.tls.load_cert_chain(pem.name)
        self.connection = self.connect()

    def connect(self):
        connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=PATIENCE)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(self, method, path, body=None, kind="application/json"):
        headers = {"Content-Type": kind, "Accept": "application/json"}
        text = json.dumps(body) if body is not None else None
        try:
            answer, text = self.answer(method, path, text, headers)
        except (OSError, http.client.HTTPException):
            # One that nobody used for a while is closed by the server.
            self.connection = self.connect()
            answer, text = self.answer(method, path, text, headers)
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def answer(self, method, path, text, headers):
        self.connection.request(method, path, text, headers)
        answer = self.connection.getresponse()
        return answer, answer.read()

    def get(self, path):
        return self.ask("GET", path)

    def create(self, path, document):
        return self.ask("POST", path, document)

    def merge(self, path, patch):
        return self.ask("PATCH", path, patch, "application/merge-patch+json")

    def namespace(self, name):
        self.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def changes(self, path):
        """The objects of a watch, as they come."""
        connection = self.connect()
        connection.request("GET", f"{path}{'&' if '?' in path else '?'}watch=true", headers={"Accept": "application/json"})
        for line in connection.getresponse():
            yield json.loads(line)["object"]


@contextlib.contextmanager
def up(*args):
    """`admit up` without a node, in a folder of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-keepers-"))
    fixed = ["up", "--listen", "127.0.0.1:0", "--admission-listen", "127.0.0.1:0", "--no-node", "--policies", str(ROOT / "policies"),
             "--crds", str(ROOT / "deploy/crds")]
    program = Program(folder, "up", fixed + list(args))
    try:
        program.ready = program.until_said("cli::up: ready")
        program.folder, program.kubeconfig = folder, folder / ".admit/kubeconfig"
        program.api = Api(program.kubeconfig)
        yield program
    finally:
        program.end()
        shutil.rmtree(folder)


@contextlib.contextmanager
def controllers(cluster, which, *args):
    port = free_port()
    fixed = ["controllers", "--kubeconfig", str(cluster.kubeconfig), "--controllers", which, "--no-cluster-operators", "--metrics-listen",
             f"127.0.0.1:{port}"]
    program = Program(cluster.folder, which, fixed + list(args))

    def counted(start):
        """The sum of the metrics whose lines begin so."""
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        except OSError:
            return 0
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(start))

    program.counted = counted
    try:
        yield program
    finally:
        program.end()


class Postgres:
    """A PostgreSQL of the part's own, as the package's user."""

    AS = ["runuser", "-u", "postgres", "--"]

    def __init__(self, **settings):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
        if not found or os.geteuid() != 0 or not shutil.which("pgbench"):
            print("this part needs root and PostgreSQL with pgbench", file=sys.stderr)
            sys.exit(2)
        self.bin = pathlib.Path(found[-1]).parent
        make = subprocess.run([*self.AS, "mktemp", "-d", "/var/tmp/bench-keepers-XXXXXX"], check=True, capture_output=True, text=True, cwd="/")
        self.folder, self.port = make.stdout.strip(), free_port()
        self.run("initdb", "--locale", "C", "-E", "UTF8", "-A", "trust", "--no-sync", "-U", "admin", "-D", f"{self.folder}/cluster")
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder, "fsync": "off",
                    "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "4GB", "autovacuum": "off",
                    "shared_buffers": "256MB", **settings}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self.run("pg_ctl", "-D", f"{self.folder}/cluster", "-w", "-s", "-l", f"{self.folder}/log", "-o", options, "start")
        self.sql("postgres", "CREATE ROLE cyndi_reader; CREATE ROLE cyndi_admin; CREATE ROLE app LOGIN PASSWORD 'app' IN ROLE cyndi_admin; "
                 "CREATE ROLE reader LOGIN IN ROLE cyndi_reader")
        self.sql("postgres", "CREATE DATABASE inventory")
        self.sql("inventory", "CREATE TABLE hosts (id uuid PRIMARY KEY, canonical_facts jsonb); GRANT SELECT ON hosts TO app")
        self.sql("postgres", "CREATE DATABASE onboarded")
        self.sql("onboarded", "CREATE SCHEMA inventory; GRANT USAGE ON SCHEMA inventory TO cyndi_reader; "
                 "GRANT ALL ON SCHEMA inventory TO cyndi_admin")

    def run(self, program, *args):
        done = subprocess.run([*self.AS, self.bin / program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/")
        if done.returncode:
            sys.exit(f"{program} failed")

    def psql(self, database, *args):
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port), "-U", "admin", "-d",
                database, *args]

    def sql(self, database, statement):
        done = subprocess.run(self.psql(database, "-c", statement), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{statement}: {done.stderr}")
        return done.stdout.strip()

    def end(self):
        self.run("pg_ctl", "-D", f"{self.folder}/cluster", "-w", "-s", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def postgres(**settings):
    database = Postgres(**settings)
    try:
        yield database
    finally:
        database.end()


def login(database, name, port):
    data = {"db.host": "127.0.0.1", "db.port": str(port), "db.name": database, "db.user": "app", "db.password": "app"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "bench"}, "stringData": data}


def configure(api, base, seconds):
    """A namespace with the inventory's login, and looks of both controllers that come round so often."""
    api.namespace("bench")
    api.create("/api/v1/namespaces/bench/secrets", login("inventory", "host-inventory-read-only-db", base.port))
    rounds = ["standard.interval", "validation.interval", "init.validation.interval"]
    data = {**{key: str(seconds) for key in rounds}, "init.validation.attempts.threshold": "99999", "validation.attempts.threshold": "99999"}
    api.create("/api/v1/namespaces/bench/configmaps",
               {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cyndi", "namespace": "bench"}, "data": data})


def pipeline(api, base, name, database):
    base.sql("postgres", f"CREATE DATABASE {database} TEMPLATE onboarded")
    api.create("/api/v1/namespaces/bench/secrets", login(database, f"{name}-db", base.port))
    # One index: what is measured is not how PostgreSQL makes indexes.
    index = "CREATE INDEX {{.TableName}}_i ON inventory.{{.TableName}} (display_name)"
    spec = {"appName": name, "managedConnectors": False, "dbTableIndexSQL": index}
    api.create(f"{CYNDI}/namespaces/bench/cyndipipelines",
               {"apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline", "metadata": {"name": name, "namespace": "bench"},
                "spec": spec})


def status(api, name):
    return api.get(f"{CYNDI}/namespaces/bench/cyndipipelines/{name}").get("status", {})


def rows(table, numbers):
    """Puts hosts of these numbers into a table."""
    return (f"INSERT INTO inventory.{table} (id, display_name, tags, updated, created, stale_timestamp, system_profile, reporter, "
            "per_reporter_staleness, last_check_in) SELECT md5(n::text)::uuid, 'h', '{}', now(), now(), now(), '{}', 'r', '{}', now() "
            f"FROM generate_series({numbers}) n ON CONFLICT DO NOTHING")


def validation():
    ids, missing = number("THOUSANDS") * 1000, min(1000, number("THOUSANDS") * 10)
    with postgres() as base, up("--controllers", "cyndi") as cluster:
        api = cluster.api
        configure(api, base, 86_400)
        pipeline(api, base, "one", "one")
        table = until("a table", lambda: status(api, "one").get("tableName"))
        base.sql("inventory", f"INSERT INTO hosts (id) SELECT md5(n::text)::uuid FROM generate_series(1, {ids}) n")
        base.sql("one", rows(table, f"{missing + 1}, {ids}"))
        for database, name in (("inventory", "hosts"), ("one", f"inventory.{table}")):
            base.sql(database, f"VACUUM (ANALYZE) {name}")
        copy = "COPY (SELECT id FROM {} ORDER BY id) TO STDOUT (FORMAT binary)"

        def copies():
            began = time.monotonic()
            both = [subprocess.Popen(base.psql(database, "-c", copy.format(name)), stdout=subprocess.DEVNULL)
                    for database, name in (("inventory", "hosts"), ("one", f"inventory.{table}"))]
            if any(one.wait() for one in both):
                sys.exit("COPY failed")
            return time.monotonic() - began

        def ours():
            began = time.monotonic()
            command = [ADMIT, "cyndi", "validate", "one", "-n", "bench", "-o", "json", "--kubeconfig", cluster.kubeconfig]
            running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            said = running.stdout.read()
            _, running.returncode, used = os.wait4(running.pid, 0)
            took = time.monotonic() - began
            found = json.loads(said or "{}").get("mismatches")
            if found != missing:
                sys.exit(f"{found} of {missing} were found missing: {said}")
            return took, used.ru_maxrss / 1024

        copies()
        rounds = [(copies(), ours()) for _ in range(number("ROUNDS"))]
        theirs, own = min(theirs for theirs, _ in rounds), min(took for _, (took, _) in rounds)
        print(f"validation of {ids} ids a side: {own:.2f} s; two COPYs in parallel: {theirs:.2f} s", flush=True)
        # What it takes to start and to ask the API server counts where there is little to compare.
        tell("validation", round(own / max(theirs, 1), 2), "times two COPYs", 1.5)
        tell("validation memory", round(max(size for _, (_, size) in rounds), 1), "MiB", 100)


def priming():
    count = number("OPERATORS")
    with up("--controllers", "mustgather", "--no-cluster-operators") as cluster:
        payload = cluster.folder / "payload"
        payload.mkdir()
        for one in range(count):
            related = [{"group": "", "resource": "namespaces", "name": "default"}]
            manifest = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": f"o{one}"}, "spec": {},
                        "status": {"relatedObjects": related}}
            (payload / f"{one:05}.json").write_text(json.dumps(manifest))
        with controllers(cluster, "clusteroperator", "--payload", str(payload)) as program:
            until("all primed", lambda: program.counted('cluster_operator_primed_total{result="primed"}') >= count)
            tell("priming", time.monotonic() - program.began, "seconds", 5)


def said(reason, message):
    return {"type": "MetricsCollectorStatus", "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}


def add_on(api, namespace, conditions):
    api.create(f"{OBA}/namespaces/{namespace}/observabilityaddons",
               {"apiVersion": "observability.open-cluster-management.io/v1beta1", "kind": "ObservabilityAddon",
                "metadata": {"name": ADD_ON, "namespace": namespace}, "spec": {}})
    if conditions:
        api.merge(f"{OBA}/namespaces/{namespace}/observabilityaddons/{ADD_ON}/status", {"status": {"conditions": conditions}})


def resync():
    count = number("ADDONS")
    with up("--controllers", "mustgather", "--no-cluster-operators") as cluster:
        api = cluster.api
        told = {**said("ForwardSuccessful", "observability-controller add-on is available."), "type": "Available"}
        for one in range(count):
            api.namespace(f"cluster{one}")
            add_on(api, f"cluster{one}", [said("ForwardSuccessful", "sent"), told])
        versions = lambda: [(it["metadata"]["uid"], it["metadata"]["resourceVersion"]) for it in api.get(f"{OBA}/observabilityaddons")["items"]]
        before = versions()
        with controllers(cluster, "observability") as program:
            looked = 'controller_runtime_reconcile_total{controller="observability-hub"'
            until("all looked at", lambda: program.counted(looked) >= count)
            tell("resync", time.monotonic() - program.began, "seconds", 3)
        tell("resync writes", len(set(versions()) ^ set(before)), "objects changed", 0)


def copy():
    with up("--controllers", "observability", "--hub-namespace", "cluster1") as cluster:
        api = cluster.api
        for namespace in (SPOKE, "cluster1"):
            api.namespace(namespace)
            add_on(api, namespace, None)
        arrived, seen = threading.Condition(), {}

        def follow():
            for found in api.changes(f"{OBA}/namespaces/cluster1/observabilityaddons"):
                conditions = found.get("status", {}).get("conditions", [])
                own = next((it for it in conditions if it["type"] == "MetricsCollectorStatus"), None)
                if own and any(it["status"] == "True" and it["reason"] == own["reason"] for it in conditions if it["type"] != own["type"]):
                    with arrived:
                        seen[own["message"]] = time.monotonic()
                        arrived.notify_all()

        threading.Thread(target=follow, daemon=True).start()
        path, waits = f"{OBA}/namespaces/{SPOKE}/observabilityaddons/{ADD_ON}", []
        for one in range(number("CHANGES") + 5):
            conditions = api.get(path).get("status", {}).get("conditions", [])
            others = [it for it in conditions if it["type"] != "MetricsCollectorStatus"]
            reason = "ForwardFailure" if one % 2 else "ForwardSuccessful"
            began = time.monotonic()
            api.merge(f"{path}/status", {"status": {"conditions": [said(reason, str(one)), *others]}})
            with arrived:
                if not arrived.wait_for(lambda: str(one) in seen, PATIENCE):
                    sys.exit(f"change {one} never came to the hub")
            waits.append(seen[str(one)] - began)
        # The first few connect.
        waits = sorted(waits[5:])
        tell("copy", round(waits[int((len(waits) - 1) * 0.99)] * 1000, 1), "ms", 200)


def pipelines():
    count = number("PIPELINES")
    with postgres(max_connections=2 * count + 100, shared_buffers="64MB") as base, \
            up("--controllers", "mustgather", "--no-cluster-operators") as cluster:
        configure(cluster.api, base, 86_400)
        base.sql("inventory", "INSERT INTO hosts (id) SELECT md5(n::text)::uuid FROM generate_series(1, 100) n; DELETE FROM hosts")
        for one in range(count):
            pipeline(cluster.api, base, f"p{one}", f"p{one}")
        with controllers(cluster, "cyndi") as program:
            def shown():
                found = cluster.api.get(f"{CYNDI}/namespaces/bench/cyndipipelines")["items"]
                return all(it.get("status", {}).get("activeTableName") for it in found)

            until("all pipelines valid", shown)
            time.sleep(number("SETTLE"))
            tell("pipelines memory", round(memory(program.process.pid), 1), "MiB", 60)
            most = ("SELECT coalesce(max(n), 0) FROM (SELECT count(*) n FROM pg_stat_activity WHERE application_name = 'admit-cyndi' "
                    "GROUP BY datname) of_each")
            tell("pipelines connections", int(base.sql("postgres", most)), "to one database", 1)


def view():
    with postgres() as base, up("--controllers", "cyndi", "--no-cluster-operators") as cluster:
        api = cluster.api
        configure(api, base, 1)
        base.sql("inventory", "INSERT INTO hosts (id) SELECT md5(n::text)::uuid FROM generate_series(1, 1000) n")
        pipeline(api, base, "one", "one")

        def shown_after(before):
            """The table that is shown once it is another than `before`; it is filled as soon as it is there."""
            filled = None
            while True:
                now = status(api, "one")
                table = now.get("tableName")
                if table and table not in (before, filled) and now.get("pipelineVersion"):
                    base.sql("one", rows(table, "1, 1000"))
                    filled = table
                if now.get("activeTableName") not in (None, "", before):
                    return now["activeTableName"]
                time.sleep(0.02)

        active = shown_after(None)
        folder = pathlib.Path(tempfile.mkdtemp(dir=cluster.folder))
        # One that shows nothing divides by zero, and fails.
        (folder / "query.sql").write_text("SELECT 1000 / count(h.id) AS one FROM inventory.hosts h;\n")
        half = max(1, number("QUERIES") // 2)
        readers = []
        for mode in ("simple", "prepared"):
            command = ["pgbench", "-n", "-h", "127.0.0.1", "-p", str(base.port), "-U", "reader", "-c", "2", "-R", str(half), "-T", "99999",
                       "-M", mode, "-f", str(folder / "query.sql"), "-l", f"--log-prefix={folder / mode}", "one"]
            errors = open(folder / f"{mode}.err", "w+")
            readers.append((mode, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors), errors))
        until("readers", lambda: any(path.stat().st_size for path in folder.glob("simple.*[0-9]")))
        for one in range(number("REFRESHES")):
            api.merge(f"{CYNDI}/namespaces/bench/cyndipipelines/one", {"spec": {"refresh": str(one)}})
            active = shown_after(active)
        failed = 0
        for mode, reader, errors in readers:
            # One that had an error has ended by itself.
            failed += reader.poll() is not None
            # Not SIGINT: what runs in the background of a shell ignores it, and so would the reader.
            reader.terminate()
            reader.wait()
            errors.seek(0)
            failed += sum("ERROR" in line for line in errors)
        waits = [int(line.split()[2]) for path in folder.glob("*.*[0-9]") for line in open(path) if len(line.split()) > 5]
        print(f"view: {len(waits)} queries through {number('REFRESHES')} refreshes", flush=True)
        tell("view failures", failed, "queries", 0)
        tell("view", max(waits) / 1000, "ms", 100)


def idle():
    def measured(*args):
        sizes, starts = [], []
        for _ in range(number("ROUNDS")):
            with up(*args) as cluster:
                time.sleep(number("SETTLE"))
                sizes.append(memory(cluster.process.pid))
                starts.append(cluster.ready)
        return min(sizes), min(starts)

    size, start = measured("--controllers", "mustgather")
    with tempfile.TemporaryDirectory() as payload:
        every = "datagather,mustgather,observability,cyndi,clusteroperator"
        size_of_all, start_of_all = measured("--controllers", every, "--payload", payload)
    print(f"idle: {size:.1f} MiB with one controller, {size_of_all:.1f} MiB with all; "
          f"ready after {start:.2f} s and {start_of_all:.2f} s", flush=True)
    tell("idle", round(size_of_all - size, 1), "MiB more", 15)
    tell("idle start", round((start_of_all - start) * 1000), "ms later", 100)


# Whoever ends it ends its servers.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
for part in sys.argv[1:]:
    globals()[part]()
sys.exit(missed)
