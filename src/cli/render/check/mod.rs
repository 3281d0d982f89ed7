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
    /// For people: each object as it is decided, then the sums
    #[default]
    Text,
    /// One document; `admit schema check` prints its schema
    Json,
    /// JUnit XML, for CI servers: a case for each object
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

/// Renders the results object by object, and keeps none of them, except as JUnit text.
#[derive(Debug)]
pub(in crate::cli) struct Drawing {
    format: Format,
    style: Style,
    totals: Totals,
    junit: Junit,
    /// What was drawn, in lists, where the next has a comma before it.
    drawn: usize,
}

/// Verbosity and colours.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Style {
    pub(in crate::cli) verbose: bool,
    /// Nothing but what is refused; it is counted among all others all the same.
    pub(in crate::cli) only_denied: bool,
    pub(in crate::cli) palette: Palette,
}

/// The data of the summary after all objects.
#[derive(Debug)]
pub(in crate::cli) struct Rest<'i> {
    /// Old objects that have no new one.
    pub(in crate::cli) left: &'i [Identity],
    /// There is no definition and no policy at all.
    pub(in crate::cli) undecided: bool,
}

/// What came of one object.
#[derive(Debug)]
pub(in crate::cli) struct ObjectReport {
    pub(in crate::cli) file: String,
    pub(in crate::cli) at: Position,
    /// Where the first field stands that is refused, if that is known.
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
    /// Whether it shows results beside the lines that they are about.
    pub(in crate::cli) fn is_of_lines(self) -> bool {
        matches!(self, Self::Junit | Self::Sarif | Self::Github)
    }
}

impl Drawing {
    pub(in crate::cli) fn new(format: Format, style: Style) -> Self {
        Self { format, style, totals: Totals::default(), junit: Junit::default(), drawn: 0 }
    }

    /// How many objects would be refused.
    pub(in crate::cli) fn refused(&self) -> usize {
        self.totals.count(Outcome::Deny)
    }

    /// The next object.
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

    /// What stands before the next result of SARIF: the head of the document, or a comma.
    fn before_result(&self) -> String {
        if self.drawn == 0 { findings::sarif_frame().0 } else { ",".to_owned() }
    }

    /// What comes after the last object.
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

    /// File and line; of an object of a cluster, its list alone.
    fn place(&self) -> String {
        match self.at.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }

    /// The object's place, for formats in which everything stands in a line.
    fn region(&self) -> Position {
        Position { line: self.at.line.max(1), column: self.at.column.max(1) }
    }

    /// The place of what is refused in the object, as far as it is known.
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

    /// As the summary counts it.
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
