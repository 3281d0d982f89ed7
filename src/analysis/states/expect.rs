//! Parses a Mermaid `stateDiagram-v2` of the expected transitions and compares a picture with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thiserror::Error;

use super::mermaid;
use super::picture::{Allowance, Picture, Transition};

/// The expected states and transitions.
///
/// ```
/// use admit_analysis::states::Diagram;
///
/// let diagram = Diagram::read("stateDiagram-v2\n    [*] --> New\n    New --> Done: at last\n    Done --> [*]\n")?;
/// assert_eq!(diagram.transitions().count(), 2);
/// # Ok::<(), admit_analysis::states::DiagramError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Diagram {
    /// From a state, or `None` for a creation, to another.
    transitions: BTreeSet<(Option<String>, String)>,
    /// States without further transitions.
    ends: BTreeSet<String>,
}

/// Why a text is not a valid diagram.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum DiagramError {
    /// It contains no `stateDiagram-v2`.
    #[error("there is no `stateDiagram-v2` in it")]
    Missing,
    /// A line is not supported here.
    #[error(
        "line {line}: `{text}` is not understood; there are `A --> B`, `A --> B: label` and `state \"text\" as A`"
    )]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
}

/// A difference between picture and diagram.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Difference {
    /// The diagram has a state that the field cannot have.
    NoState(String),
    /// A transition is allowed, but not in the diagram.
    Unwanted {
        /// The transition, as reported.
        transition: String,
    },
    /// A transition of the diagram is forbidden.
    Forbidden {
        /// The transition, as reported.
        transition: String,
        /// The messages of the rules that refuse it.
        because: String,
    },
    /// A transition of the diagram was not found.
    NotFound {
        /// The transition, as reported.
        transition: String,
        /// The number of writes that were tried.
        tried: usize,
        /// The messages of the rules that refuse the nearest attempt.
        because: String,
    },
    /// A state that the diagram ends has an allowed transition.
    NoEnd(String),
}

impl Difference {
    /// Reports whether the difference is certain; a transition that was not found may still exist.
    #[must_use]
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoState(name) => write!(f, "{name}: in the diagram, and no value of the field"),
            Self::Unwanted { transition } => write!(f, "{transition}: allowed, and not in the diagram"),
            Self::Forbidden { transition, because } => {
                write!(f, "{transition}: in the diagram, and forbidden: {because}")
            }
            Self::NotFound { transition, tried, because } => {
                write!(
                    f,
                    "{transition}: in the diagram, and refused in all of {tried} writes tried: {because}"
                )
            }
            Self::NoEnd(name) => write!(f, "{name}: the end in the diagram, and something follows it"),
        }
    }
}

impl Diagram {
    /// Parses a diagram, which may be in a code block of a Markdown document.
    ///
    /// # Errors
    /// If there is none, or a line is not supported.
    pub fn read(text: &str) -> Result<Self, DiagramError> {
        let mut lines = text.lines().enumerate().skip_while(|(_, line)| line.trim() != "stateDiagram-v2");
        lines.next().ok_or(DiagramError::Missing)?;
        let (mut diagram, mut names) = (Self::default(), BTreeMap::new());
        for (index, line) in lines {
            let line = line.trim();
            if line.starts_with("```") {
                break;
            }
            let is_told = diagram.take(line, &mut names);
            if !is_told {
                let line_number = index.saturating_add(1);
                return Err(DiagramError::Line { line: line_number, text: line.to_owned() });
            }
        }
        Ok(diagram.named(&names))
    }

    /// Builds a diagram from transitions; `None` as the origin means a creation.
    #[must_use]
    pub fn of(transitions: impl IntoIterator<Item = (Option<String>, String)>) -> Self {
        Self { transitions: transitions.into_iter().collect(), ends: BTreeSet::new() }
    }

    /// Builds a diagram from a list of transitions: `A -> B`, `[*] -> A` for a creation, `A -> [*]` for a final state.
    ///
    /// ```
    /// use admit_analysis::states::Diagram;
    ///
    /// let diagram = Diagram::listed(["[*] -> New", "New -> Done", "Done -> [*]"])?;
    /// assert_eq!(diagram, Diagram::read("stateDiagram-v2\n[*] --> New\nNew --> Done\nDone --> [*]\n")?);
    /// assert!(Diagram::listed(["New Done"]).is_err());
    /// # Ok::<(), admit_analysis::states::DiagramError>(())
    /// ```
    ///
    /// # Errors
    /// The number of the first invalid transition.
    pub fn listed<'t>(transitions: impl IntoIterator<Item = &'t str>) -> Result<Self, DiagramError> {
        let mut diagram = Self::default();
        for (line, text) in (1..).zip(transitions) {
            let wrong = || DiagramError::Line { line, text: text.to_owned() };
            let (from, to) = text.split_once("->").ok_or_else(wrong)?;
            match (from.trim(), to.trim()) {
                ("", _) | (_, "") | ("[*]", "[*]") => return Err(wrong()),
                (from, "[*]") => drop(diagram.ends.insert(from.to_owned())),
                ("[*]", to) => drop(diagram.transitions.insert((None, to.to_owned()))),
                (from, to) => drop(diagram.transitions.insert((Some(from.to_owned()), to.to_owned()))),
            }
        }
        Ok(diagram)
    }

    /// Returns the transitions; the origin is `None` for a creation.
    pub fn transitions(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        self.transitions.iter().map(|(from, to)| (from.as_deref(), to.as_str()))
    }

    /// Parses a line; returns whether it is supported.
    fn take(&mut self, line: &str, names: &mut BTreeMap<String, String>) -> bool {
        const PASSED_OVER: [&str; 4] = ["%%", "direction ", "classDef ", "class "];
        if line.is_empty() || PASSED_OVER.iter().any(|start| line.starts_with(start)) {
            return true;
        }
        if let Some(state) = line.strip_prefix("state ") {
            let Some((name, id)) = state.strip_prefix('"').and_then(|rest| rest.split_once("\" as ")) else {
                return false;
            };
            names.insert(id.trim().to_owned(), name.to_owned());
            return true;
        }
        let Some((from, rest)) = line.split_once("-->") else {
            // A state declared by itself.
            return line.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        };
        let to = rest.split_once(':').map_or(rest, |(to, _)| to).trim();
        match (from.trim(), to) {
            ("" | "[*]", "" | "[*]") | (_, "") | ("", _) => return false,
            (from, "[*]") => drop(self.ends.insert(from.to_owned())),
            ("[*]", to) => drop(self.transitions.insert((None, to.to_owned()))),
            (from, to) => drop(self.transitions.insert((Some(from.to_owned()), to.to_owned()))),
        }
        true
    }

    fn named(self, names: &BTreeMap<String, String>) -> Self {
        let name = |id: String| names.get(&id).cloned().unwrap_or(id);
        Self {
            transitions: self.transitions.into_iter().map(|(from, to)| (from.map(name), name(to))).collect(),
            ends: self.ends.into_iter().map(name).collect(),
        }
    }
}

/// Compares picture and diagram. State names match without the characters that Mermaid identifiers lack.
#[must_use]
pub fn compare(picture: &Picture, diagram: &Diagram) -> Vec<Difference> {
    let known = |name: &str| {
        let is_it = |own: &&str| *own == name || mermaid::id(own) == name;
        picture.states.iter().map(|state| state.name.as_str()).find(is_it)
    };
    let mut differences = Vec::new();
    let mut wanted: BTreeSet<(Option<&str>, &str)> = BTreeSet::new();
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for (from, to) in diagram.transitions() {
        match (from.map(|from| (from, known(from))), known(to)) {
            (Some((_, Some(from))), Some(to)) => drop(wanted.insert((Some(from), to))),
            (None, Some(to)) => drop(wanted.insert((None, to))),
            (from, found) => {
                unknown.extend(from.filter(|(_, known)| known.is_none()).map(|(name, _)| name));
                unknown.extend(Some(to).filter(|_| found.is_none()));
            }
        }
    }
    differences.extend(unknown.into_iter().map(|name| Difference::NoState(name.to_owned())));
    for transition in &picture.transitions {
        let is_wanted = wanted.contains(&(transition.from.as_deref(), transition.to.as_str()));
        differences.extend(difference(transition, is_wanted));
    }
    for name in diagram.ends.iter().filter_map(|name| known(name)) {
        if picture.allowed().any(|transition| transition.from.as_deref() == Some(name)) {
            differences.push(Difference::NoEnd(name.to_owned()));
        }
    }
    differences
}

fn difference(transition: &Transition, is_wanted: bool) -> Option<Difference> {
    let from = transition.from.as_deref().unwrap_or("[*]");
    let told = format!("{from} -> {}", transition.to);
    let messages = |rules: &[super::RuleText]| {
        let messages: Vec<&str> = rules.iter().map(|rule| rule.message.as_str()).collect();
        messages.join("; ")
    };
    match (&transition.verdict, is_wanted) {
        // Self-transitions of a state need not be in the diagram.
        (Allowance::Allowed { .. }, false) if !transition.keeps() => {
            Some(Difference::Unwanted { transition: told })
        }
        (Allowance::Forbidden { rules }, true) => {
            Some(Difference::Forbidden { transition: told, because: messages(rules) })
        }
        (Allowance::Undecided { tried, rules }, true) => {
            Some(Difference::NotFound { transition: told, tried: *tried, because: messages(rules) })
        }
        (Allowance::Otherwise { tried, .. }, true) => Some(Difference::NotFound {
            transition: told,
            tried: *tried,
            because: "only objects may that these rules did not let in".to_owned(),
        }),
        (Allowance::Allowed { .. }, true) | (_, false) => None,
    }
}
