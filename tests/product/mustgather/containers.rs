//! The containers of a must-gather's Job, as the processes that they are: what gathers, what waits for it and uploads.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::relay::{FakeProxy, Manner};
use crate::support::sshd::{PASSWORD, Sshd, USER, Wanted};

fn admit() -> Command {
    Command::new(env!("CARGO_BIN_EXE_admit"))
}

/// The volumes of a Pod.
pub(super) struct Pod {
    dir: tempfile::TempDir,
}

impl Pod {
    pub(super) fn new() -> Self {
        let pod = Self { dir: tempfile::tempdir().unwrap() };
        for volume in ["must-gather", "upload", "run"] {
            fs::create_dir(pod.path(volume)).unwrap();
        }
        pod
    }

    pub(super) fn path(&self, volume: &str) -> std::path::PathBuf {
        self.dir.path().join(volume)
    }

    pub(super) fn gather(&self, timeout: &str, script: &str) -> Command {
        let mut command = admit();
        command.args(["run-gather", "--timeout", timeout]);
        command.arg("--output").arg(self.path("must-gather")).arg("--state").arg(self.path("run"));
        command.args(["--", "sh", "-c", script]).current_dir(self.dir.path());
        command
    }

    /// The container that uploads, with the variables that the Job sets.
    pub(super) fn upload(&self, sshd: &Sshd, password: &str) -> Command {
        let mut command = admit();
        command.arg("upload").env_clear().stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in [
            ("username", USER),
            ("password", password),
            ("known_hosts", &sshd.known_hosts()),
            ("caseid", "04123456"),
            ("host", &sshd.address.to_string()),
            ("internal_user", "false"),
            ("FILENAME_PREFIX", "must-gather.local.1"),
        ] {
            command.env(name, value);
        }
        for (name, volume) in [
            ("must_gather_output", "must-gather"),
            ("must_gather_upload", "upload"),
            ("must_gather_state", "run"),
            ("message_file", "message"),
        ] {
            command.env(name, self.path(volume));
        }
        command
    }

    pub(super) fn message(&self) -> String {
        fs::read_to_string(self.path("message")).unwrap()
    }
}

pub(super) fn ended(child: Child) -> (i32, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
    assert!(!text.contains(PASSWORD), "the password is shown: {text}");
    (status.code().unwrap(), text)
}

fn same(one: &Path, two: &Path) {
    let diff = Command::new("diff").arg("-r").args([one, two]).output().unwrap();
    assert!(diff.status.success(), "{}", String::from_utf8_lossy(&diff.stdout));
}

/// 2 and the row of the image that pulls for long: the upload waits for as long as the gathering has not begun.
#[test]
fn mg_06_2_an_upload_waits_for_a_gathering_that_has_not_begun() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let pod = Pod::new();
    let upload = pod.upload(&sshd, PASSWORD).spawn().unwrap();
    let script =
        "echo gathering; mkdir -p must-gather/img/deep; date > must-gather/img/deep/date; echo done >&2";
    let gathered = pod.gather("0", script).output().unwrap();
    assert_eq!(gathered.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&gathered.stdout), "gathering\ndone\n");
    let (code, text) = ended(upload);
    assert_eq!(code, 0, "{text}");
    let name = "04123456_must-gather.local.1.tar.gz";
    assert_eq!(sshd.files(), [name]);
    assert!(pod.message().starts_with(&format!("sent {name} of ")), "{}", pod.message());
    let unpacked = pod.path("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let tar =
        Command::new("tar").arg("-xzf").arg(sshd.home().join(name)).current_dir(&unpacked).status().unwrap();
    assert!(tar.success());
    same(&pod.path("must-gather"), &unpacked.join("must-gather"));
    assert_eq!(
        fs::read_to_string(unpacked.join("must-gather/must-gather.log")).unwrap(),
        "gathering\ndone\n"
    );
    assert!(fs::read_dir(pod.path("upload")).unwrap().next().is_none(), "the archive was left behind");
}

/// 1: the exit status of a gatherer that failed was that of `tee`.
#[test]
fn mg_06_1_a_gathering_that_fails_is_not_sent() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let pod = Pod::new();
    let upload = pod.upload(&sshd, PASSWORD).spawn().unwrap();
    let gathered = pod.gather("0", "echo half > must-gather/half; exit 3").output().unwrap();
    assert_eq!(gathered.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gathered.stderr).contains("exit status 3"));
    let (code, text) = ended(upload);
    assert_eq!((code, sshd.files().len()), (1, 0), "{text}");
    assert_eq!(pod.message(), "the gathering failed with exit status 3: nothing is sent");
}

/// 3: a timeout that `timeout` did not understand; and what ran out of time is sent, and said.
#[test]
fn mg_06_3_a_gathering_out_of_time_is_sent_and_said() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let pod = Pod::new();
    let gathered = pod.gather("1", "echo half > must-gather/half; sleep 1000").output().unwrap();
    assert_eq!(gathered.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&gathered.stderr).contains("Gather timed out."));
    let (code, text) = ended(pod.upload(&sshd, PASSWORD).spawn().unwrap());
    assert_eq!((code, sshd.files().len()), (0, 1), "{text}");
    assert!(pod.message().ends_with("; the gathering ran out of time"), "{}", pod.message());
}

#[test]
fn an_upload_that_is_refused_ends_with_a_code_of_its_own() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let pod = Pod::new();
    assert!(pod.gather("0", "true").status().unwrap().success());
    let (code, text) = ended(pod.upload(&sshd, "canary-wrong").spawn().unwrap());
    assert_eq!((code, sshd.files().len()), (2, 0), "{text}");
    assert!(text.contains("Authentication failed") && !text.contains("canary"), "{text}");
    // Before anything is waited for.
    let fresh = Pod::new();
    for (name, value) in
        [("caseid", "../x"), ("host", "-oProxyCommand=x"), ("known_hosts", "nonsense"), ("password", "")]
    {
        let (code, text) = ended(fresh.upload(&sshd, PASSWORD).env(name, value).spawn().unwrap());
        assert_eq!(code, 2, "{name}: {text}");
    }
}

/// As the init container does it.
#[test]
fn the_program_copies_itself() {
    let pod = Pod::new();
    let copied = admit().args(["run-gather", "--copy-to"]).arg(pod.path("run/admit")).status().unwrap();
    assert!(copied.success());
    let told = Command::new(pod.path("run/admit")).arg("version").output().unwrap();
    assert!(told.status.success());
}

/// By a proxy under TLS whose authority the Job is handed.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_through_a_proxy_under_tls() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let proxy = FakeProxy::start(Manner::Connect(sshd.address), true).await;
    let pod = Pod::new();
    assert!(pod.gather("0", "true").status().unwrap().success());
    let mut upload = pod.upload(&sshd, PASSWORD);
    upload.env("https_proxy", format!("https://{}", proxy.address)).env("proxy_ca_pem", &proxy.ca);
    // The authorities of a ConfigMap, which may be missing.
    upload.env("proxy_ca", pod.path("absent"));
    let child = upload.spawn().unwrap();
    let (code, text) = tokio::task::spawn_blocking(move || ended(child)).await.unwrap();
    assert_eq!((code, sshd.files().len(), proxy.requests().len()), (0, 1, 1), "{text}");
}

/// 5: behind a proxy, a file that was not taken was no failure.
#[tokio::test(flavor = "multi_thread")]
async fn mg_06_5_what_a_server_behind_a_proxy_does_not_take_is_not_sent() {
    let Some(sshd) = Sshd::start(&Wanted { disk: Some(1 << 20), ..Wanted::default() }) else { return };
    let proxy = FakeProxy::start(Manner::Connect(sshd.address), false).await;
    let pod = Pod::new();
    // Nothing that a compressor could make small.
    let large = "head -c 8000000 /dev/urandom > must-gather/large";
    assert!(pod.gather("0", large).status().unwrap().success());
    let mut upload = pod.upload(&sshd, PASSWORD);
    upload.env("https_proxy", format!("http://{}", proxy.address));
    let child = upload.spawn().unwrap();
    let (code, text) = tokio::task::spawn_blocking(move || ended(child)).await.unwrap();
    assert_ne!(code, 0, "{text}");
    assert!(!pod.message().starts_with("sent "), "{}", pod.message());
    assert!(!proxy.requests().is_empty());
}
