//! Reports tests that are skipped because the machine lacks something.

use std::env;
use std::io::Write as _;
use std::thread;

/// A requirement of a test that a machine may lack; each is a word of `ADMIT_REQUIRE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Recorded answers of others, beside the project.
    Corpora,
    /// The real kubectl.
    Kubectl,
    /// The real helm.
    Helm,
    /// A real etcd and kube-apiserver.
    Apiserver,
    /// A real kube-controller-manager and kube-scheduler.
    ControllerManager,
    /// OpenSSH's server, in its own mount namespace.
    Sshd,
    /// A PostgreSQL that can be started.
    Postgres,
    /// A Chromium, to render pages.
    Chromium,
    /// The WebDriver server for Chromium.
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

    /// Returns whether `required`, words separated by commas, names it.
    ///
    /// # Panics
    /// If a word is unknown: a misspelt requirement would require nothing.
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

/// The word for all requirements.
const ALL: &str = "all";

/// Reports that the test of this thread did not run, bypassing the harness, which hides the output of passing tests.
///
/// # Panics
/// If `ADMIT_REQUIRE`, words separated by commas, names `need` or `all` (it must not be missing), or an unknown word.
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
