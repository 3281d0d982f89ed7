//! Defines the exit codes of all commands. Scripts distinguish a failed check from a usage error by them, so they never change.

use std::process::ExitCode;

/// The text about exit codes in `--help`.
pub(super) const HELP: &str = "\
Exit codes: 0 all as expected, 1 a verdict differs, 2 usage or unreadable input, 3 a policy does not compile, \
4 internal error, 5 undecided";

/// How a command ended.
///
/// Ordered by severity: if several apply, the most severe is reported.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Exit {
    /// 0: everything was as expected.
    Expected,
    /// 5: nothing differed as far as it was decided, but something was undecided.
    Undecided,
    /// 1: a verdict differed from the expected one.
    Differs,
    /// 2: wrong usage, or input that cannot be read.
    Usage,
    /// 3: a policy or CRD does not compile.
    NotCompiled,
    /// 4: an error of this program or its environment.
    Internal,
}

impl Exit {
    /// Returns the exit code of the process.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Expected => 0,
            Self::Undecided => 5,
            Self::Differs => 1,
            Self::Usage => 2,
            Self::NotCompiled => 3,
            Self::Internal => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
