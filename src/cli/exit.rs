//! The exit codes of all commands. Scripts tell a failed check from a usage error by them, so they never change.

use std::process::ExitCode;

/// Shown under `--help`.
pub(super) const HELP: &str = "\
Exit codes: 0 all as expected, 1 a verdict differs, 2 usage or unreadable input, 3 a policy does not compile, \
4 internal error, 5 undecided";

/// How a command ended.
///
/// Ordered by weight: where several apply, the greatest is reported.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Exit {
    /// 0: everything was as expected.
    Expected,
    /// 5: nothing differed as far as it could be decided, and something could not.
    Undecided,
    /// 1: a verdict differed from the expected one.
    Differs,
    /// 2: wrong usage, or input that cannot be read.
    Usage,
    /// 3: a policy or CRD that does not compile.
    NotCompiled,
    /// 4: a fault of this program or its surroundings.
    Internal,
}

impl Exit {
    /// The number that scripts see.
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
