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
    /// A real kube-controller-manager and kube-scheduler.
    ControllerManager,
    /// OpenSSH's server, in a mount namespace of its own.
    Sshd,
    /// A PostgreSQL that may be started.
    Postgres,
    /// A Chromium, to look at pages as their readers do.
    Chromium,
    /// The program that drives it.
    Chromedriver,
    /// The solver z3.
    Z3,
    /// The solver cvc5.
    Cvc5,
    /// Any other program or permission.
    Other,
}

impl Need {
    const ALL: [Self; 12] = [
        Self::Corpora,
        Self::Kubectl,
        Self::Helm,
        Self::Apiserver,
        Self::ControllerManager,
        Self::Sshd,
        Self::Postgres,
        Self::Chromium,
        Self::Chromedriver,
        Self::Z3,
        Self::Cvc5,
        Self::Other,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Corpora => "corpora",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::Apiserver => "apiserver",
            Self::ControllerManager => "controller-manager",
            Self::Sshd => "sshd",
            Self::Postgres => "postgres",
            Self::Chromium => "chromium",
            Self::Chromedriver => "chromedriver",
            Self::Z3 => "z3",
            Self::Cvc5 => "cvc5",
            Self::Other => "other",
        }
    }

    /// Whether `required`, words with commas between them, names it.
    ///
    /// # Panics
    /// Where a word names nothing: a requirement that is misspelt would hold nothing.
    fn is_among(self, required: &str) -> bool {
        let words = required.split(',').map(str::trim).filter(|word| !word.is_empty());
        let mut asked = false;
        for word in words {
            let known = word == ALL || Self::ALL.iter().any(|need| need.word() == word);
            assert!(
                known,
                "ADMIT_REQUIRE={required}: `{word}` is none of {:?} and `{ALL}`",
                Self::ALL.map(Self::word)
            );
            asked |= word == ALL || word == self.word();
        }
        asked
    }
}

/// The word for every need.
const ALL: &str = "all";

/// Says that the test of this thread did not run, past the harness, which keeps to itself what a test that passes prints.
///
/// # Panics
/// Where `ADMIT_REQUIRE`, words with commas between them, names `need` or `all` (what must be there is not), or nothing known.
pub fn skip(need: Need, reason: &str) {
    let required = env::var("ADMIT_REQUIRE").unwrap_or_default();
    let asked = need.is_among(&required);
    assert!(!asked, "ADMIT_REQUIRE={required}, and it cannot run: {reason}");
    let test = thread::current().name().unwrap_or_default().to_owned();
    let line = format!("SKIPPED {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::Need;

    #[test]
    fn needs_are_named_by_their_words() {
        assert!(!Need::Helm.is_among(""));
        assert!(!Need::Helm.is_among("kubectl, sshd"));
        assert!(Need::Helm.is_among("kubectl, helm"));
        assert!(Need::Other.is_among("all"));
    }

    #[test]
    #[should_panic(expected = "`kubctl` is none of")]
    fn a_misspelt_need_is_told() {
        Need::Helm.is_among("kubctl,helm");
    }
}
