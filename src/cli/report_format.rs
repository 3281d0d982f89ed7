//! How commands that find mistakes write what they found.

use clap::ValueEnum;

/// For people, for programs, and for those who show findings beside the lines of a change.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people
    #[default]
    Text,
    /// One document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}
