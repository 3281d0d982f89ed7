//! Tests of the plan for pipelines in each state.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::controllers::cyndi::config::spec_hash;
use crate::controllers::cyndi::connector::{CLUSTER, Login};
use crate::controllers::cyndi::crd::CyndiPipelineSpec;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn found(name: &str) -> Found {
    Found { name: name.to_owned(), ..Found::default() }
}

/// Creates a pipeline whose version 1_5 is being filled, with all that belongs to it.
fn started() -> Seen {
    let spec = CyndiPipelineSpec {
        app_name: "app".to_owned(),
        managed_connectors: true,
        ..CyndiPipelineSpec::default()
    };
    let config = Config::read("n", &BTreeMap::new(), &BTreeMap::new(), &spec).unwrap();
    let wanted = Wanted::of(&version("1_5"), "uid", &config, &spec, &Login::Environment);
    let spec_hash = spec_hash(&spec);
    let mut object = CyndiPipeline::new("a", spec);
    let hashes = (config.hash.as_str(), spec_hash.as_str());
    object.status = Some(CyndiPipelineStatus::default().started(&version("1_5"), "app", hashes, NOW));
    let connector =
        Found { labels: wanted.labels.clone(), config: wanted.config.clone(), ..found("cyndi-app-1-5") };
    Seen {
        object,
        config,
        spec_hash,
        tables: vec![version("1_5").table()],
        view: View::Missing,
        connectors: vec![connector],
        wanted: Some(wanted),
    }
}

fn with_status(change: impl FnOnce(&CyndiPipelineStatus) -> CyndiPipelineStatus) -> Seen {
    let mut seen = started();
    seen.object.status = seen.object.status.as_ref().map(change);
    seen
}

fn step_of(seen: &Seen) -> Step {
    plan(seen).step
}

#[test]
fn cy_02_01_a_new_pipeline_starts() {
    let mut seen = started();
    seen.object.status = None;
    seen.tables = vec![];
    seen.connectors = vec![];
    let expected =
        Plan { stale_connectors: vec![], stale_tables: vec![], drop_view: false, step: Step::Start };
    assert_eq!(plan(&seen), expected);
}

#[test]
fn cy_06_the_view_moves_once_the_table_is_valid() {
    assert_eq!(step_of(&started()), Step::Nothing);
    let mut valid = with_status(|status| status.validated(true, "", 1, NOW));
    assert_eq!(step_of(&valid), Step::Show(version("1_5").table()));
    valid.view = View::Other("theirs".to_owned());
    assert_eq!(step_of(&valid), Step::Show(version("1_5").table()));
    valid.view = View::Shows(version("1_5").table());
    assert_eq!(step_of(&valid), Step::Nothing);
}

#[test]
fn cy_02_04_and_07_too_many_failures_build_anew() {
    let failed = |times: i64| {
        with_status(|status| CyndiPipelineStatus { validation_failed_count: times, ..status.clone() })
    };
    assert_eq!(step_of(&failed(29)), Step::Nothing);
    assert_eq!(step_of(&failed(30)), Step::Refresh(Refresh::Invalid));
    let mut invalid = with_status(|status| status.validated(true, "", 1, NOW).validated(false, "", 1, NOW));
    assert_eq!(step_of(&invalid), Step::Nothing);
    if let Some(status) = &mut invalid.object.status {
        status.validation_failed_count = 3;
    }
    assert_eq!(step_of(&invalid), Step::Refresh(Refresh::Invalid));
}

#[test]
fn cy_02_08_deviations_are_found_in_their_order() {
    let mut seen = started();
    let mut expected = Vec::new();
    let mut deviates = |seen: &Seen, words: &str| {
        let Step::Refresh(Refresh::Deviation(what)) = step_of(seen) else { panic!("{words}") };
        assert!(what.contains(words), "{what}");
        expected.push(what);
    };
    seen.connectors[0].config.0.insert("batch.size".to_owned(), "7".to_owned());
    deviates(&seen, "batch.size");
    seen.connectors[0].labels.insert(CLUSTER.to_owned(), "other".to_owned());
    deviates(&seen, CLUSTER);
    seen.connectors[0].failed = Some("task 1".to_owned());
    deviates(&seen, "FAILED");
    seen.connectors.clear();
    deviates(&seen, "Connector cyndi-app-1-5 not found");
    seen.tables.clear();
    deviates(&seen, "Database table hosts_v1_5 not found");
    seen.spec_hash = "7".to_owned();
    deviates(&seen, "spec changed");
    seen.config.hash = "7".to_owned();
    deviates(&seen, "ConfigMap changed. New hash is 7, old hash is -1");
    assert_eq!(expected.len(), 7);
}

#[test]
fn cy_09_01_only_tables_of_ours_that_nobody_needs_are_stale() {
    let mut seen = started();
    let (shown, old) = (version("1_3").table(), version("1_4").table());
    seen.tables = vec![shown.clone(), old.clone(), version("1_5").table()];
    seen.connectors.extend([found("cyndi-app-1-3"), found("cyndi-app-1-4")]);
    seen.view = View::Shows(shown);
    let made = plan(&seen);
    assert_eq!(
        (made.stale_tables, made.stale_connectors),
        (vec![old.clone()], vec!["cyndi-app-1-4".to_owned()])
    );
    // An interrupted start leaves a table and a connector, which the next one removes before it creates others.
    seen.object.status = seen.object.status.map(|status| status.reset(NOW));
    let made = plan(&seen);
    assert_eq!(made.stale_tables, [old, version("1_5").table()]);
    assert_eq!(made.stale_connectors, ["cyndi-app-1-5", "cyndi-app-1-4"]);
    assert_eq!(made.step, Step::Start);
}

#[test]
fn cy_02_09_a_removed_pipeline_leaves_nothing() {
    let mut seen = with_status(|status| status.validated(true, "", 1, NOW));
    seen.view = View::Shows(version("1_5").table());
    seen.object.metadata.deletion_timestamp = Some(Time(NOW));
    let expected = Plan {
        stale_connectors: vec!["cyndi-app-1-5".to_owned()],
        stale_tables: vec![version("1_5").table()],
        drop_view: true,
        step: Step::LetGo,
    };
    assert_eq!(plan(&seen), expected);
    // A foreign view is not dropped.
    seen.view = View::Other("theirs".to_owned());
    assert!(!plan(&seen).drop_view);
}

#[test]
fn cy_02_what_nobody_knows_is_built_anew() {
    let unknown =
        with_status(|status| CyndiPipelineStatus { initial_sync_in_progress: false, ..status.clone() });
    assert!(matches!(step_of(&unknown), Step::Refresh(Refresh::Deviation(_))));
    let foreign =
        with_status(|status| CyndiPipelineStatus { pipeline_version: "2_5".to_owned(), ..status.clone() });
    assert!(matches!(step_of(&foreign), Step::Refresh(Refresh::Deviation(_))));
}

#[test]
fn connectors_of_others_are_no_deviation_and_paused_ones_are_woken() {
    let mut seen = started();
    seen.connectors[0].paused = true;
    assert_eq!(step_of(&seen), Step::Pause(false));
    seen.connectors.clear();
    seen.wanted = None;
    assert_eq!(step_of(&seen), Step::Nothing);
}

#[test]
fn what_failed_is_started_again_where_that_is_worth_a_try() {
    let mut seen = started();
    seen.connectors[0].failed = Some("task 1".to_owned());
    assert!(matches!(step_of(&seen), Step::Refresh(Refresh::Deviation(_))));
    seen.connectors[0].restartable = true;
    assert_eq!(step_of(&seen), Step::Restart("task 1".to_owned()));
}

#[test]
fn cy_08_15_the_view_moves_to_a_table_that_is_not_strictly_worse() {
    assert!(is_healthier(10, 8, Some(7)) && is_healthier(10, 12, Some(8)) && is_healthier(10, 0, None));
    assert!(!is_healthier(10, 7, Some(8)) && !is_healthier(10, 13, Some(8)));
}
