//! Defines the output formats of commands that report findings.

use clap::ValueEnum;

/// The formats for people, for programs, and for tools that show findings beside source lines.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum ReportFormat {
    /// Text for humans
    #[default]
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub Actions annotations
    Github,
}
