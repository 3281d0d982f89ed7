//! Renders the results of `admit check`.

mod findings;
mod json;
mod text;
mod totals;

use admit_policy::apply::{Applied, Change, Identity};
use admit_policy::manifest::Position;
use clap::ValueEnum;

use self::findings::Junit;
use self::totals::Totals;
use super::Palette;

pub(in crate::cli) use self::json::applied_json;
pub(super) use self::json::{identity_json, missed_json};
pub(in crate::cli) use self::text::missed_line;
pub(super) use self::text::{refusal, rule_lines};

/// How results are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// Text for humans: each object as it is decided, then the totals
    #[default]
    Text,
    /// One JSON document; `admit schema check` prints its schema
    Json,
    /// JUnit XML, for CI servers, with a test case for each object
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub Actions annotations
    Github,
}

/// Renders the results object by object. Only JUnit output is collected until the end.
#[derive(Debug)]
pub(in crate::cli) struct Drawing {
    format: Format,
    style: Style,
    totals: Totals,
    junit: Junit,
    /// The number of rendered objects, to separate list items by commas.
    drawn: usize,
}

/// Verbosity and colours.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Style {
    pub(in crate::cli) verbose: bool,
    /// Whether only rejected objects are shown; all are counted.
    pub(in crate::cli) only_denied: bool,
    pub(in crate::cli) palette: Palette,
}

/// What the summary needs besides the counts.
#[derive(Debug)]
pub(in crate::cli) struct Rest<'i> {
    /// Old objects that no new one replaces.
    pub(in crate::cli) left: &'i [Identity],
    /// Whether there is no definition and no policy at all.
    pub(in crate::cli) undecided: bool,
}

/// The result for one object.
#[derive(Debug)]
pub(in crate::cli) struct ObjectReport {
    pub(in crate::cli) file: String,
    pub(in crate::cli) at: Position,
    /// The position of the first rejected field, if known.
    pub(in crate::cli) field: Option<Position>,
    pub(in crate::cli) identity: Identity,
    pub(in crate::cli) applied: Applied,
}

/// The overall result; if several apply, the most severe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Deny,
    Unchanged,
    Unmatched,
    Warn,
    Audit,
    Allow,
}

impl Format {
    /// Whether the format shows results beside source lines.
    pub(in crate::cli) fn is_of_lines(self) -> bool {
        matches!(self, Self::Junit | Self::Sarif | Self::Github)
    }
}

impl Drawing {
    pub(in crate::cli) fn new(format: Format, style: Style) -> Self {
        Self { format, style, totals: Totals::default(), junit: Junit::default(), drawn: 0 }
    }

    /// Returns how many objects would be rejected.
    pub(in crate::cli) fn refused(&self) -> usize {
        self.totals.count(Outcome::Deny)
    }

    /// Renders the next object.
    pub(in crate::cli) fn object(&mut self, object: &ObjectReport) -> String {
        let outcome = object.outcome();
        self.totals.add(outcome, &object.applied);
        if self.style.only_denied && outcome != Outcome::Deny {
            return String::new();
        }
        let drawn = self.drawn;
        let out = match self.format {
            Format::Text => {
                let mut out = String::new();
                text::draw(&mut out, object, self.style.verbose, self.style.palette);
                out
            }
            Format::Json => json::object(object, drawn),
            Format::Junit => {
                self.junit.add(object);
                String::new()
            }
            Format::Sarif => match findings::sarif(object) {
                Some(result) => format!("{}\n        {result}", self.before_result()),
                None => return String::new(),
            },
            Format::Github => findings::github(object),
        };
        self.drawn = drawn.saturating_add(1);
        out
    }

    /// Returns the text before the next SARIF result: the head of the document, or a comma.
    fn before_result(&self) -> String {
        if self.drawn == 0 { findings::sarif_frame().0 } else { ",".to_owned() }
    }

    /// Renders what follows the last object.
    pub(in crate::cli) fn rest(&self, rest: &Rest<'_>) -> String {
        match self.format {
            Format::Text => text::sums(&self.totals, rest, self.style),
            Format::Json => json::rest(&self.totals, rest.left, self.drawn),
            Format::Junit => self.junit.document(),
            Format::Sarif => {
                let (head, tail) = findings::sarif_frame();
                if self.drawn == 0 { head + &tail } else { format!("\n      {tail}") }
            }
            Format::Github => format!("{}\n", self.totals.sentence()),
        }
    }
}

impl ObjectReport {
    fn outcome(&self) -> Outcome {
        Outcome::of(&self.applied)
    }

    /// Returns file and line; for an object of a cluster, the name of its list.
    fn place(&self) -> String {
        match self.at.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }

    /// Returns the object's position, with a line number in any case.
    fn region(&self) -> Position {
        Position { line: self.at.line.max(1), column: self.at.column.max(1) }
    }

    /// Returns the position of the rejected field, or else of the object.
    fn refused_at(&self) -> Position {
        self.field.unwrap_or_else(|| self.region())
    }
}

impl Outcome {
    pub(super) fn of(applied: &Applied) -> Self {
        if applied.refusal.is_some() {
            Self::Deny
        } else if applied.change == Change::Unchanged {
            Self::Unchanged
        } else if !applied.is_matched() {
            Self::Unmatched
        } else if !applied.warnings.is_empty() {
            Self::Warn
        } else if applied.is_audited() {
            Self::Audit
        } else {
            Self::Allow
        }
    }

    const ALL: [Self; 6] =
        [Self::Allow, Self::Deny, Self::Warn, Self::Audit, Self::Unmatched, Self::Unchanged];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Unchanged => "unchanged",
            Self::Unmatched => "unmatched",
            Self::Warn => "warn",
            Self::Audit => "audit",
            Self::Allow => "allow",
        }
    }

    /// Returns the word for it in the summary.
    fn counted(self) -> &'static str {
        match self {
            Self::Deny => "denied",
            Self::Unchanged => "unchanged",
            Self::Unmatched => "matched by nothing",
            Self::Warn => "allowed with warnings",
            Self::Audit => "allowed and audited",
            Self::Allow => "allowed",
        }
    }
}
