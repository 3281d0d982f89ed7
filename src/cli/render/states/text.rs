//! Renders pictures of states as text: the allowed changes, then the forbidden ones with the rules that reject them.

use std::fmt::Write as _;

use admit_analysis::states::{Allowance, Picture, Reach, RuleText, Transition};
use serde_json::Value;

use crate::cli::Exit;
use crate::cli::render::counted;
use crate::cli::states::Drawn;

/// Renders the pictures for people.
pub(in crate::cli) fn text(drawn: &Drawn, verbose: bool) -> String {
    let mut out = String::new();
    for picture in &drawn.pictures {
        let api_version = picture.kind.api_version();
        let _ = writeln!(out, "{} {} ({api_version})", picture.kind.kind, picture.subject);
        if let Some(only) = &picture.only {
            let _ = writeln!(out, "  of objects for which, from their creation on, {only}");
        }
        if let Some(limit) = &picture.limit {
            let _ = writeln!(out, "  nothing is forbidden for certain: {limit}");
        }
        allowed(&mut out, picture, verbose);
        refused(&mut out, picture);
        states(&mut out, picture);
        out.push('\n');
    }
    for difference in &drawn.differences {
        let _ = writeln!(
            out,
            "{}: {difference}",
            if difference.is_undecided() { "undecided" } else { "differs" }
        );
    }
    out.push_str(&summary(drawn));
    out
}

fn told(transition: &Transition) -> String {
    format!("{} -> {}", transition.from.as_deref().unwrap_or("[*]"), transition.to)
}

fn messages(rules: &[RuleText]) -> String {
    let one = |rule: &RuleText| format!("{}: {}", rule.origin, rule.message);
    let all: Vec<String> = rules.iter().map(one).collect();
    all.join("; ")
}

fn allowed(out: &mut String, picture: &Picture, verbose: bool) {
    for transition in picture.transitions.iter().filter(|transition| picture.may_start(transition)) {
        let (mark, example) = match &transition.verdict {
            // Keeping a state is mentioned only where it is not allowed.
            Allowance::Allowed { .. } if transition.keeps() => continue,
            Allowance::Allowed { example, always: true, user: None, .. } => {
                (format!("always     {}", told(transition)), example)
            }
            Allowance::Allowed { example, conditions, user, .. } => {
                let by = user
                    .as_ref()
                    .map(|user| format!(" by `{user}` alone, as far as tried"))
                    .unwrap_or_default();
                let and = if conditions.is_empty() {
                    String::new()
                } else {
                    format!(" if {}", messages(conditions))
                };
                (format!("allowed    {}{by}{and}", told(transition)), example)
            }
            Allowance::Otherwise { example, .. } => {
                let only = "only for objects that the rules were not seen to let in";
                (format!("undecided  {} {only}", told(transition)), example)
            }
            Allowance::Forbidden { .. } | Allowance::Undecided { .. } => continue,
        };
        let _ = writeln!(out, "  {mark}");
        if verbose {
            let old = example.old.as_ref().unwrap_or(&Value::Null);
            let _ = writeln!(out, "             old {old}\n             new {}", example.new);
        }
    }
}

/// Renders the changes that the same rules reject on one line.
fn refused(out: &mut String, picture: &Picture) {
    let mut forbidden: Vec<(String, Vec<String>)> = Vec::new();
    let mut undecided: Vec<(String, Vec<String>, usize)> = Vec::new();
    for transition in picture.transitions.iter().filter(|transition| picture.may_start(transition)) {
        match &transition.verdict {
            Allowance::Forbidden { rules } => {
                let by = messages(rules);
                match forbidden.iter_mut().find(|(rules, _)| *rules == by) {
                    Some((_, all)) => all.push(told(transition)),
                    None => forbidden.push((by, vec![told(transition)])),
                }
            }
            Allowance::Undecided { tried, rules } => {
                let by = messages(rules);
                match undecided.iter_mut().find(|(rules, ..)| *rules == by) {
                    Some((_, all, sum)) => {
                        all.push(told(transition));
                        *sum = sum.saturating_add(*tried);
                    }
                    None => undecided.push((by, vec![told(transition)], *tried)),
                }
            }
            Allowance::Allowed { .. } | Allowance::Otherwise { .. } => {}
        }
    }
    for (by, all) in forbidden {
        let _ = writeln!(out, "  forbidden  {}\n             {by}", all.join(", "));
    }
    for (by, all, tried) in undecided {
        let by = if by.is_empty() { "no object to change was found".to_owned() } else { by };
        let _ = writeln!(
            out,
            "  undecided  {}\n             refused in all of {} tried: {by}",
            all.join(", "),
            counted(tried, "write")
        );
    }
}

fn states(out: &mut String, picture: &Picture) {
    let with = |reach: Reach| {
        let names =
            picture.states.iter().filter(|state| state.reach == reach).map(|state| state.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    for (what, names) in [
        ("cannot be reached", with(Reach::Unreachable)),
        ("was not reached, as far as tried", with(Reach::Undecided)),
    ] {
        if !names.is_empty() {
            let _ = writeln!(out, "  {what}: {names}");
        }
    }
    for (name, is_exact) in picture.dead_ends() {
        let sure = if is_exact { "nothing may follow" } else { "nothing was found to follow" };
        let _ = writeln!(out, "  dead end: {name}: {sure}");
    }
    if picture.interrupted {
        let _ = writeln!(out, "  the time was over before everything was tried: --timeout gives more");
    }
}

fn summary(drawn: &Drawn) -> String {
    let (mut allowed, mut forbidden, mut undecided, mut tried) = (0_usize, 0_usize, 0_usize, 0_usize);
    for picture in &drawn.pictures {
        tried = tried.saturating_add(picture.tried);
        let told = |transition: &&Transition| {
            picture.may_start(transition) && !(transition.keeps() && transition.is_allowed())
        };
        for transition in picture.transitions.iter().filter(told) {
            let count = match transition.verdict {
                Allowance::Allowed { .. } => &mut allowed,
                Allowance::Forbidden { .. } => &mut forbidden,
                Allowance::Otherwise { .. } | Allowance::Undecided { .. } => &mut undecided,
            };
            *count = count.saturating_add(1);
        }
    }
    let verdict = match drawn.exit() {
        Exit::Expected => "OK",
        Exit::Undecided => "UNDECIDED",
        Exit::Differs | Exit::Usage | Exit::NotCompiled | Exit::Internal => "FAIL",
    };
    let pictures = counted(drawn.pictures.len(), "field");
    let differing = match drawn.differences.len() {
        0 => String::new(),
        count => format!(", {}", counted(count, "difference")),
    };
    let tried = counted(tried, "write");
    format!(
        "{verdict}: {pictures}: {allowed} allowed, {forbidden} forbidden, {undecided} undecided, {tried} tried{differing}\n"
    )
}
