//! Tests that need what a machine may lack.

use std::env;
use std::io::Write as _;
use std::thread;

/// What a test needs and a machine may lack; each is a word of `ADMIT_REQUIRE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Recorded answers that others wrote, beside the project.
    Corpora,
    /// The real kubectl.
    Kubectl,
    /// The real helm.
    Helm,
    /// A real etcd and kube-apiserver.
    Apiserver,
    /// OpenSSH's server, in a mount namespace of its own.
    Sshd,
    /// A PostgreSQL that may be started.
    Postgres,
    /// Any other program or permission.
    Other,
}

impl Need {
    fn word(self) -> &'static str {
        match self {
            Self::Corpora => "corpora",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::Apiserver => "apiserver",
            Self::Sshd => "sshd",
            Self::Postgres => "postgres",
            Self::Other => "other",
        }
    }
}

/// Says that the test of this thread did not run, past the harness, which keeps to itself what a test that passes prints.
///
/// # Panics
/// Where `ADMIT_REQUIRE`, words with commas between them, names `need` or `all`: what must be there is not.
pub fn skip(need: Need, reason: &str) {
    let required = env::var("ADMIT_REQUIRE").unwrap_or_default();
    let asked = required.split(',').map(str::trim).any(|word| word == need.word() || word == "all");
    assert!(!asked, "ADMIT_REQUIRE={required}, and it cannot run: {reason}");
    let test = thread::current().name().unwrap_or_default().to_owned();
    let line = format!("SKIPPED {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
