//! Converts the status of a DataGather: the progress and results of a gathering.

use serde_json::{Map, Value, json};

use super::super::run_conditions::read_go_duration;
use super::{Inconvertible, put_unless_empty, taken_list, text};

type Members = Map<String, Value>;

const PROGRESSING: &str = "Progressing";

/// The states of v1alpha1, with status, reason and message of the corresponding condition.
const STATES: [(&str, &str, &str, &str); 4] = [
    ("Pending", "False", "DataGatherPending", "The gathering has not begun yet"),
    ("Running", "True", "Gathering", "The gathering is under way"),
    ("Completed", "False", "GatheringSucceeded", "The gathering is complete"),
    ("Failed", "False", "GatheringFailed", "The gathering failed"),
];

/// The names of risks from 1 on.
const RISKS: [&str; 4] = ["Low", "Moderate", "Important", "Critical"];

/// Converts the status of an object that was created at `made`.
pub(super) fn to_lists(status: &mut Members, made: &str) -> Result<(), Inconvertible> {
    let mut conditions = taken_list(status, "conditions", "status")?;
    let state = status.shift_remove("dataGatherState");
    if let Some((_, holds, reason, message)) = STATES.iter().find(|(word, ..)| *word == text(state.as_ref()))
    {
        let when = match *reason {
            "DataGatherPending" => "",
            "Gathering" => text(status.get("startTime")),
            _ => text(status.get("finishTime")),
        };
        let since = [when, made].into_iter().find(|time| !time.is_empty()).unwrap_or("1970-01-01T00:00:00Z");
        conditions.retain(|condition| text(condition.get("type")) != PROGRESSING);
        conditions.push(json!({
            "type": PROGRESSING, "status": holds, "reason": reason, "message": message, "lastTransitionTime": since,
        }));
    }
    put_unless_empty(status, "conditions", conditions);
    let mut gatherers = taken_list(status, "gatherers", "status")?;
    for gatherer in gatherers.iter_mut().filter_map(Value::as_object_mut) {
        let Some(took) = gatherer.shift_remove("lastGatherDuration") else { continue };
        let seconds = read_go_duration(text(Some(&took))).map_or(0, |took| took.as_secs());
        // The field has 32 bits, which is enough for 68 years.
        gatherer.insert("lastGatherSeconds".to_owned(), seconds.min(i32::MAX.unsigned_abs().into()).into());
    }
    put_unless_empty(status, "gatherers", gatherers);
    let related = taken_list(status, "relatedObjects", "status")?;
    put_unless_empty(status, "relatedObjects", related);
    report(status, |report, checks| {
        rename(report, "downloadedAt", "downloadedTime");
        for check in checks {
            check.shift_remove("state");
            if let Some(risk) = check.get_mut("totalRisk") {
                let place = risk.as_u64().and_then(|risk| usize::try_from(risk).ok()?.checked_sub(1));
                *risk = place.and_then(|place| RISKS.get(place)).copied().unwrap_or("Low").into();
            }
        }
    })
}

pub(super) fn to_words(status: &mut Members) -> Result<(), Inconvertible> {
    let mut conditions = taken_list(status, "conditions", "status")?;
    let state = conditions.iter().find_map(state_of);
    if let Some(state) = state {
        conditions.retain(|condition| text(condition.get("type")) != PROGRESSING);
        status.insert("dataGatherState".to_owned(), state.into());
    }
    put_unless_empty(status, "conditions", conditions);
    let mut gatherers = taken_list(status, "gatherers", "status")?;
    for gatherer in gatherers.iter_mut().filter_map(Value::as_object_mut) {
        let seconds = gatherer.shift_remove("lastGatherSeconds");
        let seconds = seconds.as_ref().and_then(Value::as_u64).unwrap_or_default();
        gatherer.insert("lastGatherDuration".to_owned(), format!("{seconds}s").into());
    }
    put_unless_empty(status, "gatherers", gatherers);
    report(status, |report, checks| {
        rename(report, "downloadedTime", "downloadedAt");
        for check in checks {
            // Ignored findings are not in the report.
            check.insert("state".to_owned(), "Enabled".into());
            if let Some(risk) = check.get_mut("totalRisk") {
                let place = RISKS.iter().position(|word| *word == text(Some(risk))).unwrap_or_default();
                *risk = place.saturating_add(1).into();
            }
        }
    })
}

/// Returns the state for the condition. An unknown reason means Running, if the condition is true.
fn state_of(condition: &Value) -> Option<&'static str> {
    if text(condition.get("type")) != PROGRESSING {
        return None;
    }
    let (holds, reason) = (text(condition.get("status")), text(condition.get("reason")));
    let by_reason = STATES.iter().find(|(_, status, known, _)| *known == reason && *status == holds);
    by_reason.map(|(word, ..)| *word).or_else(|| (holds == "True").then_some("Running"))
}

fn report(
    status: &mut Members,
    change: impl FnOnce(&mut Members, &mut dyn Iterator<Item = &mut Members>),
) -> Result<(), Inconvertible> {
    const PATH: &str = "status.insightsReport";
    let report = match status.get_mut("insightsReport") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(report)) => report,
        Some(_) => return Err(Inconvertible::new(PATH, "it is no object")),
    };
    let mut checks = taken_list(report, "healthChecks", PATH)?;
    change(report, &mut checks.iter_mut().filter_map(Value::as_object_mut));
    put_unless_empty(report, "healthChecks", checks);
    Ok(())
}

fn rename(members: &mut Members, from: &str, to: &str) {
    if let Some(value) = members.shift_remove(from) {
        members.insert(to.to_owned(), value);
    }
}
