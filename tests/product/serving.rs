//! A running `admit serve` of a test: its own folder, certificate and free port, ended with the value.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::repository::root;

/// The shipped policies behind a certificate for `127.0.0.1`.
pub(crate) struct Webhook {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Webhook {
    /// Starts it, and waits until it says that it serves.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Names of a Service may be addresses as well, as far as the certificate is concerned.
        let made = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["certs", "--service", "127.0.0.1", "--out"])
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // Free at this moment; nothing else on this machine asks for that very one.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["serve", "--log-format", "json", "--listen", &format!("127.0.0.1:{port}")])
            .arg("--policies")
            .arg(root().join("policies"))
            .arg("--tls-cert")
            .arg(folder.path().join("tls.crt"))
            .arg("--tls-key")
            .arg(folder.path().join("tls.key"))
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut seen = String::new();
        while !seen.contains("\"serving\"") {
            assert!(log.read_line(&mut seen).unwrap() > 0, "`admit serve` ended:\n{seen}");
        }
        // Read to its end, so that the process never waits for a reader.
        std::thread::spawn(move || log.lines().map_while(Result::ok).for_each(drop));
        Self { child, port, folder }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// The file with the authority of its certificate.
    pub(crate) fn authority(&self) -> String {
        self.folder.path().join("ca.crt").display().to_string()
    }

    pub(crate) fn folder(&self) -> PathBuf {
        Path::to_owned(self.folder.path())
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
