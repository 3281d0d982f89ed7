//! Rows of the health gate (CO §3, §8).

use admit::controllers::clusteroperator::crd::{
    ClusterOperator, ClusterOperatorSpec, ClusterOperatorStatus, OperandVersion, OperatorCondition,
};
use admit::controllers::clusteroperator::health::{Trouble, verdict};
use admit::controllers::clusteroperator::payload::Wanted;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn versions(list: &[(&str, &str)]) -> Vec<OperandVersion> {
    let version =
        |(name, version): &(&str, &str)| OperandVersion { name: (*name).into(), version: (*version).into() };
    list.iter().map(version).collect()
}

fn wanted(expected: &[(&str, &str)]) -> Wanted {
    Wanted {
        name: "dns".to_owned(),
        labels: Default::default(),
        annotations: Default::default(),
        related: Vec::new(),
        versions: versions(expected),
    }
}

fn live(conditions: &[(&str, &str)], running: &[(&str, &str)]) -> ClusterOperator {
    let condition = |(type_, status): &(&str, &str)| OperatorCondition {
        type_: (*type_).to_owned(),
        status: (*status).to_owned(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        reason: None,
        message: None,
    };
    let mut object = ClusterOperator::new("dns", ClusterOperatorSpec {});
    object.status = Some(ClusterOperatorStatus {
        conditions: conditions.iter().map(condition).collect(),
        versions: versions(running),
        related_objects: Vec::new(),
    });
    object
}

const EXPECTED: &[(&str, &str)] = &[("operator", "2"), ("operand", "2")];
const UP: &[(&str, &str)] = &[("Available", "True"), ("Progressing", "True"), ("Degraded", "False")];

fn trouble(live: Option<&ClusterOperator>) -> Option<Trouble> {
    verdict(&wanted(EXPECTED), live, false).trouble
}

#[test]
fn co_03_the_checks_come_in_their_order() {
    assert_eq!(verdict(&wanted(&[]), None, true).trouble, Some(Trouble::NoVersions));
    assert_eq!(trouble(None), Some(Trouble::NotFound));
    let unavailable = live(&[("Available", "False"), ("Degraded", "True")], &[]);
    assert_eq!(trouble(Some(&unavailable)), Some(Trouble::NotAvailable));
    let degraded = live(&[("Available", "True"), ("Degraded", "True")], &[]);
    assert_eq!(trouble(Some(&degraded)), Some(Trouble::Degraded));
}

#[test]
fn co_08_10_without_conditions_it_is_not_available() {
    assert_eq!(trouble(Some(&live(&[], EXPECTED))), Some(Trouble::NotAvailable));
    let primed = [("Available", "Unknown"), ("Progressing", "Unknown"), ("Degraded", "Unknown")];
    assert_eq!(trouble(Some(&live(&primed, &[]))), Some(Trouble::NotAvailable), "primed only");
}

#[test]
fn co_08_11_without_a_degraded_condition_it_is_degraded() {
    assert_eq!(trouble(Some(&live(&[("Available", "True")], EXPECTED))), Some(Trouble::Degraded));
}

#[test]
fn co_08_12_degraded_is_only_told_while_the_cluster_is_made() {
    let degraded = live(&[("Available", "True"), ("Degraded", "True")], &[]);
    let verdict = verdict(&wanted(EXPECTED), Some(&degraded), true);
    assert_eq!((&verdict.trouble, verdict.reported), (&None, true));
    assert_eq!(verdict.to_string(), "Cluster operator dns is degraded");
}

#[test]
fn co_08_13_an_old_operand_is_updating() {
    let old = live(UP, &[("operator", "2"), ("operand", "1")]);
    assert_eq!(trouble(Some(&old)), Some(Trouble::Updating(vec!["operand to 2".to_owned()])));
}

#[test]
fn co_08_14_a_missing_operand_is_updating() {
    let missing = verdict(&wanted(EXPECTED), Some(&live(UP, &[("operator", "2")])), false);
    assert_eq!(missing.to_string(), "Cluster operator dns is updating versions: operand to 2");
    let trouble = missing.trouble.unwrap();
    assert_eq!(
        (trouble.reason(), trouble.plural_reason()),
        ("ClusterOperatorUpdating", "ClusterOperatorsUpdating")
    );
}

#[test]
fn co_08_15_progressing_does_not_count() {
    assert_eq!(trouble(Some(&live(UP, EXPECTED))), None);
}
