//! A running `admit serve` of a test: its own folder and authority, free ports, ended with the value.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use admit::admission::tls::{Authority, Identity};
use rustls::ClientConfig;
use rustls::version::TLS13;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::support::https::{Client, tls};

/// A bound for a busy machine, not an expectation.
const START: Duration = Duration::from_secs(60);

/// A folder with policies and certificates in which `admit serve` can be started.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) authority: Authority,
}

/// A started process; killed when the value goes, if it still runs.
pub(crate) struct Serving {
    child: Child,
    pub(crate) webhook: SocketAddr,
    pub(crate) observe: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("policies")).unwrap();
        let authority = Authority::open(&folder.path().join("ca"), OffsetDateTime::now_utc()).unwrap();
        let place = Self { folder, authority };
        place.renew();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file as an editor that knows its trade does: whole, or not at all.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let beside = self.folder.path().join("beside");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, self.path(name)).unwrap();
    }

    /// A new serving certificate and key, in this order and not at once.
    pub(crate) fn renew(&self) -> Identity {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let leaf = self.authority.issue_server(&names, OffsetDateTime::now_utc()).unwrap();
        self.write("tls.crt", &leaf.certificate_pem);
        self.write("tls.key", &leaf.key_pem);
        leaf
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["serve", "--log-format", "json"]);
        for flag in ["--listen", "--observe-listen"] {
            if !args.contains(&flag) {
                command.args([flag, "127.0.0.1:0"]);
            }
        }
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// What comes of a start that ends by itself.
    pub(crate) fn fails(&self, args: &[&str]) -> Output {
        self.command(&with_files(args)).output().unwrap()
    }

    /// Starts it with the certificate of this place, and waits until it says where it listens.
    pub(crate) fn start(&self, args: &[&str]) -> Serving {
        self.started(&with_files(args))
    }

    /// Starts it with certificates of its own.
    pub(crate) fn start_self_signed(&self, args: &[&str]) -> Serving {
        self.started(&[&["--self-signed", "--shutdown-delay", "0"], args].concat())
    }

    /// Starts it, and stops to read what it logs as soon as it serves.
    pub(crate) fn start_unheard(&self, args: &[&str]) -> Serving {
        let mut child = self.command(&with_files(args)).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let found = lines.into_iter().find_map(|line| addresses(&line));
        let (webhook, observe) = found.unwrap_or_else(|| panic!("`admit serve` did not start"));
        Serving { child, webhook, observe, log: Arc::default() }
    }

    /// Starts it such that it logs what `filter` says.
    pub(crate) fn start_logging(&self, filter: &str, args: &[&str]) -> Serving {
        let mut command = self.command(&with_files(args));
        command.env("RUST_LOG", filter);
        Self::spawned(command)
    }

    /// Starts it where it may have as many files open as `connections` of a port take, and what it keeps for the rest.
    pub(crate) fn start_with_room(&self, connections: usize) -> Serving {
        let plain = self.command(&with_files(&[]));
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {}; exec \"$0\" \"$@\"", connections + 128);
        command.arg("-c").arg(limited).arg(plain.get_program()).args(plain.get_args());
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        Self::spawned(command)
    }

    fn started(&self, args: &[&str]) -> Serving {
        Self::spawned(self.command(args))
    }

    fn spawned(mut command: Command) -> Serving {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (sender, serving) = mpsc::channel();
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some(addresses) = addresses(&line) {
                    let _ = sender.send(addresses);
                }
                let mut log = written.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let found = serving.recv_timeout(START);
        let Ok((webhook, observe)) = found else {
            let _ = child.kill();
            panic!("`admit serve` did not start:\n{}", log.lock().unwrap());
        };
        Serving { child, webhook, observe, log }
    }

    /// A client's settings that trust this place.
    pub(crate) fn tls(&self) -> Arc<ClientConfig> {
        tls(self.authority.certificate_pem(), None, &[&TLS13])
    }
}

fn with_files<'a>(args: &[&'a str]) -> Vec<&'a str> {
    // The last of several counts nowhere in clap: what a test names itself is not named again.
    let own = if args.contains(&"--tls-cert") {
        &[][..]
    } else {
        &["--tls-cert", "tls.crt", "--tls-key", "tls.key"]
    };
    [own, args].concat()
}

fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").filter(|fields| fields["message"] == "serving")?;
    Some((fields["address"].as_str()?.parse().ok()?, fields["observe"].as_str()?.parse().ok()?))
}

impl Serving {
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The log, once it says what is wanted: lines take a moment to come.
    pub(crate) fn log_until(&self, wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let log = self.log();
            if wanted(&log) {
                return log;
            }
            assert!(began.elapsed() < START, "gave up waiting:\n{log}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// SIGTERM, then the exit status.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.signal("-TERM");
        self.child.wait().unwrap()
    }

    /// A path of the second port.
    pub(crate) async fn observed(&self, path: &str) -> (u16, String) {
        let answered = Client::plain(self.observe).await.unwrap().get(path).await.unwrap();
        (answered.code.as_u16(), answered.text())
    }

    /// Waits until the second port says at `path` what is wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut client = Client::plain(self.observe).await.unwrap();
        let waiting = async {
            loop {
                let answered = client.get(path).await.unwrap();
                let leaves = answered.headers.get("connection").is_some_and(|value| value == "close");
                let text = answered.text();
                if wanted(&text) {
                    return text;
                }
                // One that is stopping takes leave with each answer.
                if leaves {
                    client = Client::plain(self.observe).await.unwrap();
                }
                tokio::task::yield_now().await;
            }
        };
        let found = tokio::time::timeout(START, waiting).await;
        found.unwrap_or_else(|_| panic!("gave up waiting:\n{}", self.log()))
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.status("VmRSS:")
    }

    /// The most that there was of it.
    pub(crate) fn peak_memory(&self) -> usize {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> usize {
        let status = fs::read_to_string(Path::new("/proc").join(self.child.id().to_string()).join("status"));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1024
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A policy about ConfigMaps named `name`, with its binding, that denies unless `expression`.
pub(crate) fn policy(name: &str, expression: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}}
  validations:
  - expression: {expression:?}
    message: {name} says no
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"
    )
}

/// The creation of a ConfigMap with this data, as an API server asks about it.
pub(crate) fn review(uid: &str, data: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": uid, "operation": "CREATE", "name": "c", "namespace": "n",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "userInfo": {"username": "u"},
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data},
        },
    })
    .to_string()
}
