//! A running `admit up` of a test: its own folder, free ports, ended with the value.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::repository::root;

/// How long a start may take on a busy machine before the test gives up. A bound, not an expectation.
const START: Duration = Duration::from_secs(60);

/// A folder in which `admit up` can be started, again and again: the shipped files, and a state folder of its own.
pub(crate) struct Workplace {
    folder: tempfile::TempDir,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for shipped in ["policies", "deploy"] {
            symlink(root().join(shipped), folder.path().join(shipped)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path().join(".admit/kubeconfig")
    }

    /// `admit up` on free ports, not yet started.
    pub(crate) fn command(&self) -> Command {
        self.command_on("127.0.0.1:0", "127.0.0.1:0")
    }

    /// `admit up` on these addresses, not yet started.
    pub(crate) fn command_on(&self, api: &str, webhook: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command
            .args(["up", "--listen", api, "--admission-listen", webhook])
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Starts it and waits until it says that it is ready: the last of its three lines on standard output.
    pub(crate) fn start(&self) -> Running {
        self.start_with(&[])
    }

    /// The same, with further arguments.
    pub(crate) fn start_with(&self, args: &[&str]) -> Running {
        let mut command = self.command();
        command.args(args);
        self.launch(command)
    }

    /// The same of a command of the caller's, which runs `admit up` in the end.
    pub(crate) fn launch(&self, mut command: Command) -> Running {
        let log = fs::File::create(self.path().join("admit.log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let hints: Vec<String> = (0..3).map_while(|_| lines.recv_timeout(START).ok()).collect();
        let running = Running { child };
        assert_eq!(hints.len(), 3, "`admit up` did not start:\n{}", self.log());
        running
    }

    /// An administrator's client of the newest start.
    pub(crate) async fn client(&self) -> Client {
        client(&self.kubeconfig()).await
    }

    /// What the newest start logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path().join("admit.log")).unwrap_or_default()
    }
}

/// Whom a kubeconfig names, where it says.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// A started process; killed when the value goes, if it still runs.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM, then the exit status.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap()
    }

    /// SIGKILL: no chance to tidy up.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
