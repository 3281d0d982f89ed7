//! Summarizes recent gatherings for the ClusterOperator and for metrics: whether uploads keep failing, whether
//! reports arrive, what the newest of them says, and whether gathering is enabled at all.
//!
//! It is computed from the DataGathers that have ended: neither a restart nor a change of leader forgets a failure or
//! counts it twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::counts::Counts;
use super::crd::{DataGather, DataGatherStatus, InsightsReport};
use super::job;
use super::run_conditions::{ANALYSIS, RECORDED, REMOTE_AVAILABLE, REMOTE_VALID, UPLOADED};
use crate::controllers::kit::conditions::{Statement, Truth};
use crate::controllers::kit::key::Key;
use crate::controllers::kit::operator::{Aspect, Says};

/// From how many failed uploads in a row on they are reported: an outage of an hour is not worth it.
const TOLD_FROM: u32 = 5;
/// The weight of a failed Job: it is unknown whether it uploaded, so people should look at once.
const FAILED_JOB: u32 = TOLD_FROM;
const UPLOAD_DEGRADED: &str = "UploadDegraded";
const DOWNLOAD_DEGRADED: &str = "InsightsDownloadDegraded";
const DISABLED: &str = "Disabled";

/// Why periodic gathering is disabled.
#[derive(Clone, Debug, PartialEq)]
pub enum Disabled {
    ByFlag,
    ByConfiguration,
    /// There is no token for uploads.
    NoToken(String),
}

/// A summary of the DataGathers of this cluster.
#[derive(Debug)]
pub struct Health {
    says: Says,
    counts: Counts,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Objects that were seen before their end, so that their results are counted.
    open: BTreeSet<Key>,
    ended: BTreeMap<Key, Ended>,
}

/// The results of an ended DataGather.
#[derive(Clone, Debug, PartialEq)]
struct Ended {
    at: Timestamp,
    upload: Upload,
    /// The condition about the report, if one was requested.
    analysis: Option<Condition>,
    /// The conditions about the remote configuration, if one was requested.
    remote: Vec<Statement>,
    report: Option<InsightsReport>,
}

#[derive(Clone, Debug, PartialEq)]
enum Upload {
    NotTried,
    Done,
    /// A failure with this weight.
    Failed {
        weight: u32,
        reason: String,
        message: String,
    },
}

impl Health {
    pub fn new(says: Says, counts: Counts) -> Self {
        let health = Self { says, counts, known: Mutex::default() };
        health.tell(&Known::default());
        health
    }

    /// Updates the summary with `object` from the watch.
    pub fn see(&self, key: &Key, object: &DataGather) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ended) = object.status.as_ref().filter(|_| object.has_ended()).and_then(Ended::of) else {
            known.open.insert(key.clone());
            return;
        };
        if known.open.remove(key) {
            object.status.as_ref().and_then(sent).iter().for_each(|code| self.counts.sent(*code));
        }
        if known.ended.get(key) != Some(&ended) {
            known.ended.insert(key.clone(), ended);
            self.tell(&known);
        }
    }

    pub fn gone(&self, key: &Key) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.open.remove(key);
        if known.ended.remove(key).is_some() {
            self.tell(&known);
        }
    }

    /// Reports whether periodic gatherings are enabled.
    pub fn asked_for(&self, disabled: Option<&Disabled>) {
        let (truth, reason, message) = match disabled {
            None => (Truth::False, "AsExpected", "gatherings come round".to_owned()),
            Some(Disabled::ByFlag) => {
                (Truth::True, "ByFlag", "no gathering comes round: --gather-every is never".to_owned())
            }
            Some(Disabled::ByConfiguration) => (
                Truth::True,
                "ByConfiguration",
                "no gathering comes round: the InsightsDataGather `cluster` says None".to_owned(),
            ),
            Some(Disabled::NoToken(error)) => {
                (Truth::True, "NoToken", format!("no gathering comes round: {error}"))
            }
        };
        self.says.show(Statement::new(DISABLED, truth, reason, message));
    }

    fn tell(&self, known: &Known) {
        let mut newest: Vec<&Ended> = known.ended.values().collect();
        newest.sort_by_key(|ended| std::cmp::Reverse(ended.at));
        self.says.say_and_show("Upload", Aspect::Degraded, uploads(&newest));
        self.says.say_and_show("InsightsDownload", Aspect::Degraded, downloads(&newest));
        for statement in newest.first().into_iter().flat_map(|ended| &ended.remote) {
            self.says.show(statement.clone());
        }
        self.counts.health(newest.iter().find_map(|ended| ended.report.as_ref()));
    }
}

impl Ended {
    fn of(status: &DataGatherStatus) -> Option<Self> {
        let condition = |type_: &str| status.conditions.iter().find(|condition| condition.type_ == type_);
        let at = status.finish_time.as_ref().map(|time| time.0)?;
        let blamed = [RECORDED, UPLOADED].into_iter().filter_map(condition);
        let job = blamed
            .into_iter()
            .find(|condition| condition.status == "False" && job::is_blamed(&condition.message));
        let upload = match (job, condition(UPLOADED)) {
            (Some(job), _) => {
                let message = job.message.clone();
                Upload::Failed { weight: FAILED_JOB, reason: "JobFailed".to_owned(), message }
            }
            (None, Some(uploaded)) if uploaded.status == "True" => Upload::Done,
            (None, Some(uploaded)) if uploaded.status == "False" && sent(status).is_some() => {
                let (reason, message) = (uploaded.reason.clone(), uploaded.message.clone());
                Upload::Failed { weight: 1, reason, message }
            }
            (None, _) => Upload::NotTried,
        };
        let analysis = condition(ANALYSIS).cloned();
        let again = |type_| condition(type_).map(|condition| restated(type_, condition));
        let remote = [REMOTE_AVAILABLE, REMOTE_VALID].into_iter().filter_map(again).collect();
        Some(Self { at, upload, analysis, remote, report: status.insights_report.clone() })
    }
}

fn restated(type_: &'static str, condition: &Condition) -> Statement {
    let truth = match condition.status.as_str() {
        "True" => Truth::True,
        "False" => Truth::False,
        _ => Truth::Unknown,
    };
    Statement::new(type_, truth, &condition.reason, condition.message.clone())
}

/// Returns the HTTP status of the upload: 0 if there was no response; None if none was tried.
fn sent(status: &DataGatherStatus) -> Option<u16> {
    let uploaded = status.conditions.iter().find(|condition| condition.type_ == UPLOADED)?;
    uploaded.reason.strip_prefix("HttpStatus")?.parse().ok()
}

fn uploads(newest: &[&Ended]) -> Statement {
    let mut in_a_row: u32 = 0;
    let mut last = None;
    for ended in newest {
        match &ended.upload {
            Upload::NotTried => {}
            Upload::Done => break,
            Upload::Failed { weight, reason, message } => {
                in_a_row = in_a_row.saturating_add(*weight);
                last.get_or_insert((reason, message));
            }
        }
    }
    match last.filter(|_| in_a_row >= TOLD_FROM) {
        Some((reason, message)) => Statement::new(UPLOAD_DEGRADED, Truth::True, reason, message.clone()),
        None => Statement::new(UPLOAD_DEGRADED, Truth::False, "AsExpected", ""),
    }
}

fn downloads(newest: &[&Ended]) -> Statement {
    let asked = newest.iter().find_map(|ended| ended.analysis.as_ref());
    match asked.filter(|analysis| analysis.status == "False") {
        Some(missing) => {
            Statement::new(DOWNLOAD_DEGRADED, Truth::True, &missing.reason, missing.message.clone())
        }
        None => Statement::new(DOWNLOAD_DEGRADED, Truth::False, "AsExpected", ""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ended(name: &str, minute: u32, conditions: &[(&str, &str, &str, &str)]) -> (Key, DataGather) {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status, reason, message)| {
                json!({"type": type_, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": "2026-11-21T10:00:00Z"})
            })
            .collect();
        let object: DataGather = serde_json::from_value(json!({
            "apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
            "metadata": {"name": name, "uid": name}, "spec": {},
            "status": {"conditions": conditions, "dataGatherState": "Failed",
                "finishTime": format!("2026-11-21T10:{minute:02}:00Z")},
        }))
        .unwrap();
        (Key::of(&object), object)
    }

    fn failed(name: &str, minute: u32) -> (Key, DataGather) {
        ended(name, minute, &[(UPLOADED, "False", "HttpStatus500", "the service is ill")])
    }

    fn truth(says: &Says, type_: &str) -> Truth {
        says.shown(type_).unwrap().truth
    }

    #[test]
    fn uploads_are_degraded_from_the_fifth_failure_in_a_row_until_one_succeeds() {
        let (says, counts) = (Says::default(), Counts::default());
        let health = Health::new(says.clone(), counts.clone());
        let see = |(key, object): (Key, DataGather)| health.see(&key, &object);
        see(ended("old", 0, &[(UPLOADED, "True", "HttpStatus202", "")]));
        for minute in 1..5 {
            see(failed(&format!("f{minute}"), minute));
            see(ended(&format!("n{minute}"), minute, &[(UPLOADED, "False", "UploadNotConfigured", "")]));
        }
        assert_eq!(truth(&says, UPLOAD_DEGRADED), Truth::False);
        let (fifth, object) = failed("f5", 5);
        health.see(&fifth, &object);
        let told = says.shown(UPLOAD_DEGRADED).unwrap();
        assert_eq!(
            (told.truth, told.reason.as_str(), told.message.as_str()),
            (Truth::True, "HttpStatus500", "the service is ill")
        );
        assert_eq!(says.said("Upload", Aspect::Degraded).unwrap().truth, Truth::True);
        // All of this happened before this process started.
        assert_eq!(counts.sent_in_all(), 0);
        health.gone(&fifth);
        assert_eq!(truth(&says, UPLOAD_DEGRADED), Truth::False);
        see(failed("f6", 6));
        assert_eq!(truth(&says, UPLOAD_DEGRADED), Truth::True);
        see(ended("good", 7, &[(UPLOADED, "True", "HttpStatus202", "")]));
        assert_eq!(truth(&says, UPLOAD_DEGRADED), Truth::False);
    }

    #[test]
    fn the_remote_configuration_of_the_newest_gathering_is_shown() {
        let says = Says::default();
        let health = Health::new(says.clone(), Counts::default());
        let see = |(key, object): (Key, DataGather)| health.see(&key, &object);
        see(ended("plain", 1, &[]));
        assert!(says.shown(REMOTE_AVAILABLE).is_none());
        let of = |code: &'static str| {
            [(REMOTE_AVAILABLE, "False", code, "away"), (REMOTE_VALID, "Unknown", "NoValidationYet", "")]
        };
        see(ended("new", 3, &of("HttpStatus500")));
        see(ended("old", 2, &of("HttpStatus0")));
        let told = says.shown(REMOTE_AVAILABLE).unwrap();
        assert_eq!(
            (told.truth, told.reason.as_str(), told.message.as_str()),
            (Truth::False, "HttpStatus500", "away")
        );
        assert_eq!(truth(&says, REMOTE_VALID), Truth::Unknown);
    }

    #[test]
    fn a_failed_job_counts_five() {
        let says = Says::default();
        let health = Health::new(says.clone(), Counts::default());
        let (key, object) = ended(
            "j",
            1,
            &[(RECORDED, "False", "RecordingFailed", "Failed to record data: the Job failed: OOMKilled")],
        );
        health.see(&key, &object);
        let told = says.shown(UPLOAD_DEGRADED).unwrap();
        assert_eq!((told.truth, told.reason.as_str()), (Truth::True, "JobFailed"));
    }

    #[test]
    fn an_upload_is_counted_once_by_who_saw_it_end_and_a_missing_report_is_told() {
        let (says, counts) = (Says::default(), Counts::default());
        let health = Health::new(says.clone(), counts.clone());
        let (key, mut object) = ended(
            "a",
            1,
            &[
                (UPLOADED, "True", "HttpStatus202", ""),
                (ANALYSIS, "False", "ReportNotFound", "there is none"),
            ],
        );
        let over = object.clone();
        object.status = None;
        health.see(&key, &object);
        health.see(&key, &over);
        health.see(&key, &over);
        assert_eq!(counts.sent_in_all(), 1);
        let told = says.shown(DOWNLOAD_DEGRADED).unwrap();
        assert_eq!((told.truth, told.reason.as_str()), (Truth::True, "ReportNotFound"));
        health.gone(&key);
        assert_eq!(truth(&says, DOWNLOAD_DEGRADED), Truth::False);
    }
}
