//! `plan.yaml`, case by case; and for each status that a plan writes, the rules that admission would hold it to.

use std::collections::BTreeMap;

use admit::controllers::datagather::crd::{DataGather, DataGatherSpec, DataGatherStatus, State};
use admit::controllers::datagather::fetch::Fetched;
use admit::controllers::datagather::job::JobView;
use admit::controllers::datagather::plan::{Plan, Prepared, Rules, plan};
use admit::controllers::datagather::run_state::{
    Activity, ProcessOutcome, Progress, RecordOutcome, Recorded, ReportOutcome, UploadOutcome,
};
use admit::gather::GATHERERS;
use admit::gather::upload::Report;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::Value;

const NOW: &str = "2026-11-21T10:00:00Z";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "sample")]
    object: String,
    #[serde(default)]
    deleting: bool,
    #[serde(default)]
    spec: DataGatherSpec,
    #[serde(default)]
    status: Option<DataGatherStatus>,
    #[serde(default)]
    activity: Doing,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    jobs: Option<String>,
    #[serde(default)]
    periodic: bool,
    #[serde(default)]
    always_obfuscate: bool,
    expect: Expect,
}

fn sample() -> String {
    "sample".to_owned()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Doing {
    #[default]
    Idle,
    Gathering(BTreeMap<String, Value>),
    Interrupted(BTreeMap<String, Value>),
    Report(BTreeMap<String, String>),
}

/// A plan without `state` writes no status.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Expect {
    state: Option<State>,
    #[serde(default)]
    conditions: BTreeMap<String, String>,
    #[serde(rename = "requestID")]
    request_id: Option<String>,
    start_time: Option<Time>,
    finish_time: Option<Time>,
    #[serde(default)]
    related: Vec<String>,
    #[serde(default)]
    report: bool,
    #[serde(default)]
    events: Vec<String>,
    work: String,
}

#[test]
fn the_plan_of_each_case() {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("plan.yaml")).unwrap();
    assert!(cases.len() > 25);
    for case in cases {
        let (fetched, rules) = given(&case);
        let plan = plan(&fetched, &rules);
        check(&case, &plan);
        if let Some(written) = &plan.status {
            lawful(&case.name, case.status.as_ref(), written);
        }
    }
}

fn given(case: &Case) -> (Fetched, Rules) {
    let mut object = DataGather::new(&case.object, case.spec.clone());
    object.metadata.uid = Some("uid-1".to_owned());
    object.metadata.deletion_timestamp = case.deleting.then(|| Time(NOW.parse().unwrap()));
    object.status.clone_from(&case.status);
    let job = match case.job.as_deref() {
        None => JobView::NotUsed,
        Some("Missing") => JobView::Missing,
        Some("Foreign") => JobView::Foreign,
        Some("Active") => JobView::Active,
        Some("Failed") => JobView::Failed("BackoffLimitExceeded".to_owned()),
        Some(other) => panic!("{}: job {other}", case.name),
    };
    let rules = Rules {
        table: GATHERERS,
        jobs: case.jobs.clone(),
        periodic: case.periodic,
        reports: true,
        always_obfuscate: case.always_obfuscate,
    };
    let activity = match &case.activity {
        Doing::Idle => Activity::Idle,
        Doing::Gathering(steps) => Activity::Gathering(progress(steps)),
        Doing::Interrupted(steps) => Activity::Interrupted(progress(steps)),
        Doing::Report(report) => Activity::Reporting(Some(match report.get("id") {
            Some(id) => ReportOutcome::Found(Report { request_id: id.clone(), checks: vec![], uri: None }),
            None => ReportOutcome::Missing(report["missing"].clone()),
        })),
    };
    (Fetched { object, activity, job, now: NOW.parse().unwrap() }, rules)
}

fn progress(steps: &BTreeMap<String, Value>) -> Progress {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let code = |value: &Value| u16::try_from(value["code"].as_u64().unwrap()).unwrap();
    Progress {
        remote: None,
        rows: Vec::new(),
        recorded: steps.get("recorded").map(|step| match text(step, "error") {
            Some(error) => RecordOutcome::Failed(error),
            None => RecordOutcome::Recorded(Recorded {
                records: usize::try_from(step["records"].as_u64().unwrap()).unwrap(),
                file: text(step, "file").unwrap(),
                translation: None,
                names_unknown: false,
            }),
        }),
        uploaded: steps.get("uploaded").map(|step| match (text(step, "id"), text(step, "error")) {
            (Some(request_id), _) => UploadOutcome::Accepted { code: code(step), request_id },
            (None, Some(message)) => UploadOutcome::Failed { code: code(step), message },
            (None, None) => UploadOutcome::NotConfigured,
        }),
        processed: steps.get("processed").map(|step| match text(step, "error") {
            Some(error) => ProcessOutcome::Failed(error),
            None => ProcessOutcome::NotConfigured,
        }),
        ended: steps.get("ended").map(|at| at.as_str().unwrap().parse::<Timestamp>().unwrap()),
    }
}

fn check(case: &Case, plan: &Plan<Prepared>) {
    let (name, expect) = (&case.name, &case.expect);
    let work = match &plan.work {
        Prepared::Gather(request) if request.obfuscate => "Gather obfuscated".to_owned(),
        Prepared::Gather(_) => "Gather clear".to_owned(),
        Prepared::Report { request_id } => format!("Report {request_id}"),
        other => format!("{other:?}"),
    };
    assert_eq!(work, expect.work, "{name}: work");
    let events: Vec<_> = plan.notices.iter().map(|notice| notice.reason).collect();
    assert_eq!(events, expect.events, "{name}: events");
    let Some(state) = expect.state else {
        assert_eq!(plan.status, None, "{name}: no status is written");
        return;
    };
    let status = plan.status.as_ref().unwrap_or_else(|| panic!("{name}: no status"));
    assert_eq!(status.data_gather_state, Some(state), "{name}: state");
    for (type_, expected) in &expect.conditions {
        let found = status.conditions.iter().find(|condition| &condition.type_ == type_);
        let found = found.map(|condition| format!("{}/{}", condition.status, condition.reason));
        assert_eq!(found.as_ref(), Some(expected), "{name}: {type_}");
    }
    assert_eq!(status.insights_request_id, expect.request_id, "{name}: request id");
    assert_eq!(status.finish_time, expect.finish_time, "{name}: finish time");
    if expect.start_time.is_some() {
        assert_eq!(status.start_time, expect.start_time, "{name}: start time");
    }
    let related: Vec<_> = status
        .related_objects
        .iter()
        .map(|related| format!("{}/{}", related.resource, related.name))
        .collect();
    assert_eq!(related, expect.related, "{name}: related objects");
    assert_eq!(status.insights_report.is_some(), expect.report, "{name}: report");
}

/// What the shipped policies and the schema's transition rules ask of a status write.
fn lawful(name: &str, old: Option<&DataGatherStatus>, new: &DataGatherStatus) {
    let state = |status: &DataGatherStatus| status.data_gather_state;
    let (was, is) = (old.and_then(state), state(new));
    let allowed: &[Option<State>] = match was {
        None => &[Some(State::Pending), Some(State::Failed)],
        Some(State::Pending) => &[Some(State::Pending), Some(State::Running), Some(State::Failed)],
        Some(State::Running) => &[Some(State::Running), Some(State::Completed), Some(State::Failed)],
        Some(State::Completed) => &[Some(State::Completed)],
        Some(State::Failed) => &[Some(State::Failed)],
    };
    assert!(allowed.contains(&is), "{name}: {was:?} to {is:?}");
    let holds = |type_: &str| new.conditions.iter().any(|c| c.type_ == type_ && c.status == "True");
    let started = new.start_time.is_some();
    assert!(!matches!(is, Some(State::Running | State::Completed)) || started, "{name}: startTime");
    let over = matches!(is, Some(State::Completed | State::Failed));
    assert!(!over || new.finish_time.is_some(), "{name}: finishTime");
    assert!(
        new.start_time.is_none() || new.finish_time.is_none() || new.finish_time >= new.start_time,
        "{name}"
    );
    assert!(new.insights_request_id.is_none() || holds("DataUploaded"), "{name}: id without an upload");
    assert!(!holds("AnalysisAvailable") || is == Some(State::Completed), "{name}: early analysis");
    if let Some(old) = old {
        assert!(old.start_time.is_none() || old.start_time == new.start_time, "{name}: startTime moved");
        assert!(old.finish_time.is_none() || old.finish_time == new.finish_time, "{name}: finishTime moved");
        let id = &old.insights_request_id;
        assert!(id.is_none() || id == &new.insights_request_id, "{name}: id changed");
    }
}
