//! A real OpenSSH server, for one test: its own mount namespace, in which the machine's lists of accounts are copies with one
//! account more, its own host keys, a free port of 127.0.0.1. Nothing of the machine changes. It takes root.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SSHD: &str = "/usr/sbin/sshd";
/// The account, and what `openssl passwd -6` makes of its password.
pub(crate) const USER: &str = "case";
pub(crate) const PASSWORD: &str = "canary-password-4711";
const HASH: &str =
    "$6$gatherer$p3fH3DZ2gx9B87niho0GA.TbYPiOPrYuIxE5llJ9quxRdpNltxplvR9.cRDfIq8g/yRdli/CYpBKs01uGn/7S.";
const ID: u32 = 61_234;
/// Requests that a drop box does not answer.
pub(crate) const DROP_BOX: &str = "internal-sftp -P rename,posix-rename,stat,lstat,fstat,read,opendir,remove";
/// No server takes longer to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked of a server.
pub(crate) struct Wanted {
    /// What serves the subsystem; none at all where it is empty.
    pub(crate) subsystem: &'static str,
    pub(crate) keyboard_interactive: bool,
    /// Bytes of the disk behind the account's folder, where it is small; nobody outside sees what is on it then.
    pub(crate) disk: Option<usize>,
    /// Kind of the host key, as `ssh-keygen -t` names it.
    pub(crate) key: &'static str,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { subsystem: "internal-sftp", keyboard_interactive: false, disk: None, key: "ed25519" }
    }
}

pub(crate) struct Sshd {
    dir: tempfile::TempDir,
    child: Child,
    pub(crate) address: SocketAddr,
    lines: mpsc::Receiver<String>,
}

impl Sshd {
    /// Starts a server; nothing where the machine cannot have one, which is said loudly.
    pub(crate) fn start(wanted: &Wanted) -> Option<Self> {
        if let Some(reason) = impossible() {
            testing::skip(testing::Need::Sshd, &reason);
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        chown(&home, Some(ID), Some(ID)).unwrap();
        accounts(dir.path(), &home);
        keygen(wanted.key, &dir.path().join("host_key"));
        // Free at this moment; whoever takes it before sshd does makes this test fail to start, which is tried again.
        let mut started = None;
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            fs::write(dir.path().join("config"), config(wanted, dir.path(), address)).unwrap();
            if let Some((child, lines)) = run(dir.path(), wanted.disk) {
                started = Some((child, lines, address));
                break;
            }
        }
        let (child, lines, address) = started.unwrap_or_else(|| panic!("sshd does not start"));
        Some(Self { dir, child, address, lines })
    }

    /// The line of known_hosts for it, under the name `host`.
    pub(crate) fn known_as(&self, host: &str) -> String {
        let key = fs::read_to_string(self.dir.path().join("host_key.pub")).unwrap();
        format!("{host} {key}")
    }

    /// The line of known_hosts for it, where it is.
    pub(crate) fn known_hosts(&self) -> String {
        self.known_as(&format!("[127.0.0.1]:{}", self.address.port()))
    }

    /// Where the account's files are.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The files of the account, by name.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What it has logged so far, with all that it was asked.
    pub(crate) fn log(&self) -> String {
        self.lines.try_iter().map(|line| line + "\n").collect()
    }

    /// Its log up to the first line that holds `text`.
    pub(crate) fn log_until(&self, text: &str) -> String {
        let mut log = String::new();
        let end = Instant::now() + PATIENCE;
        while !log.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => log = log + &line + "\n",
                Err(_) => panic!("sshd does not log `{text}`:\n{log}"),
            }
        }
        log
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // With those that it started for connections, which are of its group.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

fn impossible() -> Option<String> {
    if !Path::new(SSHD).exists() {
        return Some(format!("no {SSHD}: install openssh-server"));
    }
    let tried = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    let namespace = tried.is_ok_and(|status| status.success());
    (!namespace).then(|| "no mount namespace of its own can be made: run as root".to_owned())
}

/// Copies of the machine's lists with one account more, and the way in which passwords are asked for.
fn accounts(dir: &Path, home: &Path) {
    let home = home.display();
    for (list, line) in [
        ("passwd", format!("{USER}:x:{ID}:{ID}::{home}:/bin/sh\n")),
        ("group", format!("{USER}:x:{ID}:\n")),
        ("shadow", format!("{USER}:{HASH}:20000:0:99999:7:::\n")),
    ] {
        let copy = fs::read_to_string(Path::new("/etc").join(list)).unwrap() + &line;
        fs::write(dir.join(list), copy).unwrap();
        fs::set_permissions(dir.join(list), fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::create_dir(dir.join("pam.d")).unwrap();
    let pam = "auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n";
    fs::write(dir.join("pam.d/sshd"), pam).unwrap();
}

/// Makes a key without a passphrase.
pub(crate) fn keygen(kind: &str, path: &Path) {
    let status =
        Command::new("ssh-keygen").args(["-q", "-N", "", "-t", kind, "-f"]).arg(path).status().unwrap();
    assert!(status.success());
}

fn config(wanted: &Wanted, dir: &Path, address: SocketAddr) -> String {
    let Wanted { subsystem, keyboard_interactive, disk: _, key: _ } = wanted;
    let yes = |on: bool| if on { "yes" } else { "no" };
    let mut config = format!(
        "Port {}\nListenAddress {}\nHostKey {}\nPidFile none\nStrictModes no\nUsePAM {}\nPasswordAuthentication {}\n\
         KbdInteractiveAuthentication {}\nPubkeyAuthentication no\nLogLevel DEBUG1\n",
        address.port(),
        address.ip(),
        dir.join("host_key").display(),
        yes(*keyboard_interactive),
        yes(!keyboard_interactive),
        yes(*keyboard_interactive),
    );
    if !subsystem.is_empty() {
        config += &format!("Subsystem sftp {subsystem}\nForceCommand {subsystem}\n");
    }
    config
}

/// Starts it, and waits until it listens; nothing where it ended instead.
fn run(dir: &Path, disk: Option<usize>) -> Option<(Child, mpsc::Receiver<String>)> {
    let small = disk.map_or(String::new(), |bytes| {
        format!("mount -t tmpfs -o size={bytes},uid={ID},gid={ID},mode=700 none home && ")
    });
    let script = format!(
        "mount -t tmpfs none /run && mkdir -p /run/sshd && {small}\
         mount --bind passwd /etc/passwd && mount --bind group /etc/group && mount --bind shadow /etc/shadow && \
         mount --bind pam.d /etc/pam.d && exec {SSHD} -D -e -f \"$PWD/config\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let (sender, lines) = mpsc::channel();
    let (ready, listening) = mpsc::channel();
    std::thread::spawn(move || {
        for line in log.lines().map_while(Result::ok) {
            if line.contains("Server listening on") {
                let _ = ready.send(());
            }
            let _ = sender.send(line);
        }
    });
    // Its log ends with it.
    if listening.recv_timeout(PATIENCE).is_ok() {
        return Some((child, lines));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
