//! Writes a picture as a Mermaid `stateDiagram-v2`, in the form that [`super::expect`] parses.

use std::fmt::Write as _;

use super::picture::{Allowance, Picture, Reach, RuleText};

/// The maximum length of a label: longer ones push the states of a diagram apart.
const LABEL: usize = 80;

/// Returns the picture as a Mermaid diagram.
#[must_use]
pub fn mermaid(picture: &Picture) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    let _ = writeln!(out, "    %% {} {}", picture.kind.kind, picture.subject);
    let is_drawn = |name: &str| {
        let mut drawn = picture.allowed();
        drawn.any(|transition| transition.to == name || transition.from.as_deref() == Some(name))
    };
    for state in picture.states.iter().filter(|state| is_drawn(&state.name) && id(&state.name) != state.name)
    {
        let _ = writeln!(out, "    state \"{}\" as {}", state.name.replace('"', "'"), id(&state.name));
    }
    for transition in picture.allowed() {
        let Allowance::Allowed { conditions, user, .. } = &transition.verdict else { continue };
        let from = transition.from.as_deref().map_or_else(|| "[*]".to_owned(), id);
        let _ = write!(out, "    {from} --> {}", id(&transition.to));
        match label(conditions, user.as_deref()) {
            label if label.is_empty() => out.push('\n'),
            label => drop(writeln!(out, ": {label}")),
        }
    }
    for (name, _) in picture.dead_ends() {
        let _ = writeln!(out, "    {} --> [*]", id(name));
    }
    for state in picture.states.iter().filter(|state| !is_drawn(&state.name)) {
        let why = match state.reach {
            Reach::Unreachable => "cannot be reached",
            Reach::Reached | Reach::Undecided => "was not reached",
        };
        let _ = writeln!(out, "    %% {}: {why}", state.name);
    }
    out
}

/// Returns the conditions of a transition, and the user if only one may make it.
fn label(conditions: &[RuleText], user: Option<&str>) -> String {
    let mut parts: Vec<String> = user.map(|user| format!("by {user}")).into_iter().collect();
    if let Some(first) = conditions.first() {
        let more = match conditions.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        parts.push(format!("if {}{more}", first.message));
    }
    // These characters end a label.
    parts.join(", ").replace([':', ';', '#', '\n'], " ").chars().take(LABEL).collect()
}

/// Returns a name that needs no quotes in a diagram.
pub(super) fn id(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    match plain.as_str() {
        "end" | "state" | "note" | "direction" | "class" => format!("{plain}_"),
        text if text.chars().all(|c| c == '_') => format!("empty{}", plain.len()),
        _ => plain,
    }
}
