//! Tests of conversion: round trips over generated objects, the translation of each word, and invalid objects.

use serde_json::json;

use super::*;

/// A deterministic generator.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        // Knuth's constants; the upper bits are more random.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one<'w>(&mut self, of: &[&'w str]) -> &'w str {
        of[usize::try_from(self.throw(of.len() as u64)).unwrap()]
    }

    fn many<T>(&mut self, most: u64, make: impl Fn(&mut Self, u64) -> T) -> Vec<T> {
        (0..self.throw(most + 1)).map(|number| make(self, number)).collect()
    }

    fn time(&mut self) -> String {
        format!("2026-01-{:02}T{:02}:00:00Z", self.throw(28) + 1, self.throw(24))
    }
}

fn convert(object: &Value, kind: Kind, from: &str, to: &str) -> Result<Value, Inconvertible> {
    let mut object = object.clone();
    (kind.convert)(&mut object, shape_of(from).unwrap(), shape_of(to).unwrap())?;
    Ok(object)
}

fn condition(dice: &mut Dice, kind: &str) -> Value {
    json!({"type": kind, "status": dice.one(&["True", "False", "Unknown"]), "reason": "R", "message": "m", "lastTransitionTime": dice.time()})
}

fn put(object: &mut Value, field: &str, value: Value) {
    let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value == json!({});
    if !empty {
        object[field] = value;
    }
}

/// Generates a DataGather of v1 that a server accepts.
fn listed(dice: &mut Dice) -> Value {
    let mut spec = json!({"gatherers": {"mode": "All"}});
    if dice.throw(2) == 0 {
        spec["dataPolicy"] = json!(["ObfuscateNetworking"]);
    }
    let configs = dice.many(
        3,
        |dice, number| json!({"name": format!("a/b{number}"), "state": dice.one(&["Enabled", "Disabled"])}),
    );
    if !configs.is_empty() {
        spec["gatherers"] = json!({"mode": "Custom", "custom": {"configs": configs}});
    }
    if dice.throw(3) == 0 {
        spec["storage"] = json!({"type": "PersistentVolume", "persistentVolume": {"claim": {"name": "c"}}});
    }
    let mut object = json!({
        "apiVersion": "insights.openshift.io/v1", "kind": "DataGather",
        "metadata": {"name": "g", "uid": "u", "labels": {"a": "b"}, "creationTimestamp": dice.time()}, "spec": spec,
    });
    let mut status = json!({});
    for time in ["startTime", "finishTime"] {
        if dice.throw(2) == 0 {
            status[time] = dice.time().into();
        }
    }
    let mut conditions = dice.many(2, |dice, number| condition(dice, &format!("C{number}")));
    let progress = match dice.throw(5) {
        0 => Some(("False", "DataGatherPending", "The gathering has not begun yet", None)),
        1 => Some(("True", "Gathering", "The gathering is under way", status.get("startTime"))),
        2 => Some(("False", "GatheringSucceeded", "The gathering is complete", status.get("finishTime"))),
        3 => Some(("False", "GatheringFailed", "The gathering failed", status.get("finishTime"))),
        _ => None,
    };
    if let Some((holds, reason, message, since)) = progress {
        let since = since.cloned().unwrap_or_else(|| object["metadata"]["creationTimestamp"].clone());
        conditions.push(json!({"type": "Progressing", "status": holds, "reason": reason, "message": message, "lastTransitionTime": since}));
    }
    put(&mut status, "conditions", conditions.into());
    let gatherers = dice.many(2, |dice, number| {
        json!({"name": format!("a/b{number}"), "conditions": [condition(dice, "DataGathered")], "lastGatherSeconds": dice.throw(90)})
    });
    put(&mut status, "gatherers", gatherers.into());
    let checks = dice.many(2, |dice, number| {
        json!({"description": format!("finding {number}"), "advisorURI": "https://a", "totalRisk": dice.one(&["Low", "Moderate", "Important", "Critical"])})
    });
    let mut report = json!({});
    put(&mut report, "healthChecks", checks.into());
    if report != json!({}) {
        report["downloadedTime"] = dice.time().into();
    }
    put(&mut status, "insightsReport", report);
    put(&mut object, "status", status);
    object
}

#[test]
fn what_was_written_in_a_later_version_comes_back_whole() {
    let mut dice = Dice(7);
    for _ in 0..2_000 {
        let object = listed(&mut dice);
        let stored = convert(&object, DATA_GATHER, "v1", "v1alpha1").unwrap();
        assert_eq!(stored["metadata"], object["metadata"], "metadata is nobody's to change");
        for version in ["v1alpha2", "v1"] {
            let back = convert(&stored, DATA_GATHER, "v1alpha1", version).unwrap();
            assert_eq!(back, object, "by way of {stored}");
        }
        assert_eq!(convert(&object, DATA_GATHER, "v1", "v1alpha2").unwrap(), object);
        // A stored object stays equal after several round trips.
        let again =
            convert(&convert(&stored, DATA_GATHER, "v1alpha1", "v1").unwrap(), DATA_GATHER, "v1", "v1alpha1");
        assert_eq!(again.unwrap(), stored);
    }
}

#[test]
fn words_become_lists() {
    let stored = json!({
        "spec": {
            "dataPolicy": "ClearText",
            "gatherersConfig": [{"name": "a", "state": "Disabled"}, {"name": "b"}],
            "gatherers": [{"name": "a", "state": ""}],
        },
        "status": {
            "dataGatherState": "Completed", "finishTime": "2026-01-01T00:00:00Z", "relatedObjects": [],
            "conditions": [{"type": "DataUploaded", "status": "True"}],
            "gatherers": [{"name": "a", "lastGatherDuration": "1m2.9s"}, {"name": "b", "lastGatherDuration": "350µs"}],
            "insightsReport": {"downloadedAt": "t", "healthChecks": [{"totalRisk": 4, "state": "Disabled"}, {"totalRisk": 9}]},
        },
    });
    let expected = json!({
        "spec": {"gatherers": {"mode": "Custom", "custom": {"configs": [
            {"name": "a", "state": "Enabled"}, {"name": "b", "state": "Enabled"},
        ]}}},
        "status": {
            "finishTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "DataUploaded", "status": "True"}, {
                "type": "Progressing", "status": "False", "reason": "GatheringSucceeded",
                "message": "The gathering is complete", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            "gatherers": [{"name": "a", "lastGatherSeconds": 62}, {"name": "b", "lastGatherSeconds": 0}],
            "insightsReport": {"downloadedTime": "t", "healthChecks": [{"totalRisk": "Critical"}, {"totalRisk": "Low"}]},
        },
    });
    assert_eq!(convert(&stored, DATA_GATHER, "v1alpha1", "v1").unwrap(), expected);
    let empty = json!({"spec": {}, "status": {"conditions": []}});
    let seen = convert(&empty, DATA_GATHER, "v1alpha1", "v1alpha2").unwrap();
    assert_eq!(seen, json!({"spec": {"gatherers": {"mode": "All"}}}));
}

#[test]
fn configurations_convert_both_ways() {
    let pairs = [
        (json!({"dataPolicy": "None", "disabledGatherers": []}), json!({"gatherers": {"mode": "All"}})),
        (json!({"disabledGatherers": ["all"]}), json!({"gatherers": {"mode": "None"}})),
        (
            json!({"dataPolicy": "ObfuscateNetworking", "disabledGatherers": ["a", "b/c"], "storage": {"type": "Ephemeral"}}),
            json!({
                "dataPolicy": ["ObfuscateNetworking"], "storage": {"type": "Ephemeral"},
                "gatherers": {"mode": "Custom", "custom": {"configs": [
                    {"name": "a", "state": "Disabled"}, {"name": "b/c", "state": "Disabled"},
                ]}},
            }),
        ),
    ];
    for (words, lists) in pairs {
        let of = |config: &Value| json!({"metadata": {"name": "cluster"}, "spec": {"gatherConfig": config}});
        let seen = convert(&of(&words), INSIGHTS_DATA_GATHER, "v1alpha1", "v1").unwrap();
        assert_eq!(seen, of(&lists));
        let mut back = convert(&seen, INSIGHTS_DATA_GATHER, "v1alpha2", "v1alpha1").unwrap();
        if words["dataPolicy"] == "None" {
            back["spec"]["gatherConfig"]["dataPolicy"] = "None".into();
        }
        assert_eq!(back, of(&words));
    }
    let group = json!([{"name": "a", "state": "Disabled"}, {"name": "a/b", "state": "Enabled"}]);
    for (config, path) in [
        (
            json!({"gatherers": {"mode": "Custom", "custom": {"configs": group}}}),
            "spec.gatherConfig.gatherers.custom.configs",
        ),
        (json!({"dataPolicy": ["WorkloadNames"]}), "spec.gatherConfig.dataPolicy"),
    ] {
        let object = json!({"spec": {"gatherConfig": config}});
        let error = convert(&object, INSIGHTS_DATA_GATHER, "v1", "v1alpha1").unwrap_err().to_string();
        assert!(error.starts_with(path), "{error}");
    }
}

/// Whatever a client stores or sends, the result is an object or an error.
#[test]
fn odd_objects_are_refused_with_a_path_or_converted_but_never_a_panic() {
    let odd = [
        json!(null),
        json!(5),
        json!("x"),
        json!([]),
        json!([[]]),
        json!([5]),
        json!({}),
        json!({"x": 1}),
        json!([{"name": {}}]),
    ];
    let places = [
        "/spec",
        "/spec/dataPolicy",
        "/spec/gatherers",
        "/spec/gatherersConfig",
        "/spec/gatherers/mode",
        "/spec/gatherers/custom",
        "/spec/gatherers/custom/configs",
        "/spec/gatherConfig",
        "/spec/gatherConfig/disabledGatherers",
        "/spec/gatherConfig/gatherers",
        "/spec/gatherConfig/dataPolicy",
        "/status",
        "/status/conditions",
        "/status/dataGatherState",
        "/status/gatherers",
        "/status/insightsReport",
        "/status/insightsReport/healthChecks",
        "/status/relatedObjects",
        "/metadata",
    ];
    let mut refused = 0;
    for place in places {
        for value in &odd {
            let mut object = json!({});
            let mut at = &mut object;
            for step in place.trim_start_matches('/').split('/') {
                at = &mut at[step];
            }
            *at = value.clone();
            for kind in [DATA_GATHER, INSIGHTS_DATA_GATHER] {
                for (from, to) in [("v1alpha1", "v1"), ("v1", "v1alpha1"), ("v1", "v1alpha2")] {
                    refused += usize::from(convert(&object, kind, from, to).is_err());
                }
            }
        }
    }
    assert!(refused > 50, "{refused}");
    let names = json!({"spec": {"dataPolicy": ["ObfuscateNetworking", "WorkloadNames"]}});
    let error = convert(&names, DATA_GATHER, "v1", "v1alpha1").unwrap_err().to_string();
    assert!(error.starts_with("spec.dataPolicy: v1alpha1 has no word for WorkloadNames"), "{error}");
}
