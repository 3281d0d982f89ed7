//! Explains the result of a test case: selects the expressions that decided it from the recording, with the values
//! of their parts.

use admit_cel::EvalError;
use admit_policy::suite::CaseResult;
use admit_policy::{ExpressionId, Origin, Recorded, RecordedOutcome, RecordedTrace};
use indexmap::IndexMap;

use crate::cli::render::suites::RuleValues;

/// The most expressions that are shown if none of them decided alone.
const MAX_RULES: usize = 3;
/// The most parts that are shown of one expression.
const MAX_PARTS: usize = 24;

/// Returns the expressions that decided `result`.
pub(super) fn deciding(recorded: &IndexMap<ExpressionId, Recorded>, result: &CaseResult) -> Vec<RuleValues> {
    let spoke = |id: &ExpressionId, trace: &RecordedTrace| match (&result.policy, &id.origin) {
        (Some(policy), Origin::Policy { name }) => {
            name == policy && id.path == format!("{}.expression", result.field)
        }
        (Some(policy), Origin::Mutating { name }) => {
            let below = id.path.strip_prefix(&*result.field);
            name == policy && below.is_some_and(|below| below.starts_with('.'))
        }
        (None, Origin::Definition { .. }) => {
            is_at_or_below(&result.field, &trace.at) && trace.outcome.as_deref() != Ok("true")
        }
        _ => false,
    };
    let rules = || recorded.iter().filter(|(id, _)| is_rule(id));
    let all = || rules().flat_map(|(id, rule)| rule.traces.iter().map(move |trace| (id, rule, trace)));
    let mut chosen: Vec<_> = all().filter(|(id, _, trace)| spoke(id, trace)).collect();
    if chosen.is_empty() {
        // Nothing was rejected: shows the rules that might have, with their first evaluation.
        chosen = rules().filter_map(|(id, rule)| Some((id, rule, rule.traces.first()?))).collect();
    }
    chosen.truncate(MAX_RULES);
    chosen.into_iter().map(|(id, rule, trace)| values(id, rule, trace)).collect()
}

/// Whether a rule at `node` can report an error about `field`: `fieldPath` can point below its node.
fn is_at_or_below(field: &str, node: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    node == "<nil>" || field.strip_prefix(node).is_some_and(below)
}

fn is_rule(id: &ExpressionId) -> bool {
    match id.origin {
        Origin::Policy { .. } => {
            ["spec.validations[", "spec.matchConditions["].iter().any(|start| id.path.starts_with(start))
                && id.path.ends_with(".expression")
        }
        Origin::Mutating { .. } => {
            ["spec.mutations[", "spec.matchConditions["].iter().any(|start| id.path.starts_with(start))
        }
        Origin::Definition { .. } => id.path.ends_with(".rule"),
        Origin::Configuration { .. } => true,
    }
}

fn values(id: &ExpressionId, rule: &Recorded, trace: &RecordedTrace) -> RuleValues {
    let owner = match &id.origin {
        Origin::Policy { name } | Origin::Mutating { name } => format!("of policy {name}, {}", id.path),
        Origin::Definition { name, version } => format!("of {name} {version}, at {}", trace.at),
        Origin::Configuration { kind, name } if name.is_empty() => format!("of {kind}, {}", id.path),
        Origin::Configuration { kind, name } => format!("of {kind} {name}, {}", id.path),
    };
    let (whole, parts) =
        trace.parts.split_last().map_or((None, &[][..]), |(last, parts)| (Some(last), parts));
    let mut values: Vec<(String, String)> = Vec::new();
    for part in parts {
        let shown = (written(&rule.text, part), outcome(&part.outcome));
        // Literals are skipped, and a part that is written several times is shown once.
        if shown.0 != shown.1 && !values.contains(&shown) {
            values.push(shown);
        }
    }
    let texts: Vec<String> = values.iter().map(|(text, _)| text.clone()).collect();
    values.retain(|(text, value)| !is_way_to_others(text, value, &texts));
    let more = values.len().saturating_sub(MAX_PARTS);
    values.truncate(MAX_PARTS);
    RuleValues {
        place: owner,
        text: rule.text.clone(),
        values,
        omitted: trace.omitted.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)),
        outcome: whole.map_or_else(|| outcome(&trace.outcome), |whole| outcome(&whole.outcome)),
    }
}

/// Whether the part is a map or list of which a member is shown itself.
fn is_way_to_others(text: &str, value: &str, texts: &[String]) -> bool {
    value.starts_with(['{', '['])
        && texts.iter().any(|other| other.strip_prefix(text).is_some_and(|rest| rest.starts_with(['.', '['])))
}

/// Returns the text of a part on one line, after the iterations of the macros around it.
fn written(text: &str, part: &RecordedOutcome) -> String {
    let words: Vec<&str> = part.span.in_parentheses(text).split_whitespace().collect();
    let rounds: String = part.rounds.iter().map(|round| format!("[{round}]")).collect();
    if rounds.is_empty() { words.join(" ") } else { format!("{rounds} {}", words.join(" ")) }
}

fn outcome(outcome: &Result<String, EvalError>) -> String {
    match outcome {
        Ok(value) => value.clone(),
        Err(error) => format!("error: {error}"),
    }
}
