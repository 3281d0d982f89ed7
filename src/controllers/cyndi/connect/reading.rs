//! Converts connectors from and to the form of Kafka Connect's REST interface. Pure.
//!
//! Kafka Connect keeps a map of strings for a connector, and nothing beside it. So what Strimzi has in fields of
//! their own and in labels is stored in that map: plugins ignore members that they do not know.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::controllers::cyndi::connector::{CLASS, Found, OWNER, Wanted, as_texts, failed};
use crate::controllers::cyndi::connector_config::Configuration;

/// The prefix of labels in the configuration.
const LABEL: &str = "labels.";
const NAME: &str = "name";
const PLUGIN: &str = "connector.class";
const TASKS: &str = "tasks.max";

/// Returns the whole configuration of the desired connector.
pub(super) fn document(wanted: &Wanted) -> BTreeMap<String, String> {
    let mut document = wanted.config.0.clone();
    let own = [(NAME, wanted.name.clone()), (PLUGIN, CLASS.to_owned()), (TASKS, wanted.tasks.to_string())];
    document.extend(own.map(|(key, value)| (key.to_owned(), value)));
    document.extend(wanted.labels.iter().map(|(name, value)| (format!("{LABEL}{name}"), value.clone())));
    document
}

/// Converts a connector. It has no status until a worker has started it: then nothing counts as failed, and it counts as paused or
/// running as it should be.
pub(super) fn found(name: &str, info: &Value, status: Option<&Value>, should_rest: bool) -> Found {
    let (labels, config): (BTreeMap<_, _>, BTreeMap<_, _>) =
        as_texts(&info["config"]).0.into_iter().partition(|(key, _)| key.starts_with(LABEL));
    let bare =
        |(key, value): (String, String)| (key.strip_prefix(LABEL).unwrap_or_default().to_owned(), value);
    let state = status.and_then(|status| status["connector"]["state"].as_str());
    Found {
        name: name.to_owned(),
        labels: labels.into_iter().map(bare).collect(),
        config: Configuration(
            config.into_iter().filter(|(key, _)| ![NAME, PLUGIN, TASKS].contains(&key.as_str())).collect(),
        ),
        paused: state.map_or(should_rest, |state| matches!(state, "PAUSED" | "STOPPED")),
        failed: status.and_then(failed),
        restartable: false,
        leaving: false,
    }
}

/// Whether a connector belongs to the pipeline with the uid.
pub(super) fn is_owned(found: &Found, uid: &str) -> bool {
    found.labels.get(OWNER).is_some_and(|owner| owner == uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted() -> Wanted {
        let text = |text: &str| text.to_owned();
        Wanted {
            name: text("cyndi-a-1-5"),
            labels: [(text(OWNER), text("uid")), (text("cyndi/appName"), text("a"))].into(),
            tasks: 16,
            paused: false,
            config: Configuration([(text("topics"), text("t")), (text("batch.size"), text("100"))].into()),
        }
    }

    #[test]
    fn cy_10_what_is_told_is_what_is_found() {
        let wanted = wanted();
        let told = json!(document(&wanted));
        assert_eq!((&told["connector.class"], &told["tasks.max"]), (&json!(CLASS), &json!("16")));
        let found = found(&wanted.name, &json!({"config": told}), None, false);
        assert_eq!((&found.labels, &found.config), (&wanted.labels, &wanted.config));
        assert_eq!(wanted.deviation(&found), None);
        assert!(is_owned(&found, "uid") && !is_owned(&found, ""));
    }

    #[test]
    fn cy_10_states() {
        let of = |connector: &str, task: &str, should_rest| {
            let status =
                json!({"connector": {"state": connector}, "tasks": [{"id": 3, "state": task, "trace": "x"}]});
            let found = found("a", &Value::Null, Some(&status), should_rest);
            (found.paused, found.failed)
        };
        assert_eq!(of("RUNNING", "RUNNING", true), (false, None));
        assert_eq!(of("PAUSED", "PAUSED", false), (true, None));
        assert_eq!(of("STOPPED", "UNASSIGNED", false), (true, None));
        assert_eq!(of("UNASSIGNED", "RESTARTING", false), (false, None));
        assert_eq!(of("RUNNING", "FAILED", false), (false, Some("task 3".to_owned())));
        assert_eq!(of("FAILED", "RUNNING", false), (false, Some("the connector".to_owned())));
        for should_rest in [true, false] {
            let unknown = found("a", &Value::Null, None, should_rest);
            assert_eq!((unknown.paused, unknown.failed), (should_rest, None));
        }
    }
}
