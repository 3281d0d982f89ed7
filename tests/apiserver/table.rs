//! Cells of printer columns against the recorded matrix.

use std::sync::Arc;

use admit_apiserver::internals::{Include, Options, PrinterColumn, ResourceInfo, builtin_rows, render};
use serde_json::{Value, json};

use crate::corpus;

#[test]
fn printer_columns_show_what_was_recorded() {
    let Some(folder) = testing::corpus("crd-matrix").unwrap() else { return };
    let definitions = corpus::lines(&folder.join("crds.jsonl"));
    let mut compared = 0;
    for case in corpus::lines(&folder.join("recorded.jsonl")) {
        if case["feature"] != "printer columns" {
            continue;
        }
        let definition =
            definitions.iter().find(|definition| definition["crd"] == case["crd"]).expect("a definition");
        let info = row(&definition["manifest"]);
        let mut object = &Value::Null;
        for step in case["steps"].as_array().expect("steps") {
            match step["op"].as_str() {
                Some("create") => object = &step["object"],
                Some("table") => {
                    let options = Options {
                        include: Include::None,
                        version: "v1",
                        headers: true,
                        now: corpus::clock().now(),
                    };
                    let table = render(&info, object, &options);
                    assert_eq!(
                        table["columnDefinitions"], step["object"]["columnDefinitions"],
                        "{}",
                        case["id"]
                    );
                    let (cells, recorded) = (&table["rows"][0]["cells"], &step["object"]["rows"][0]["cells"]);
                    assert_eq!(without_ages(cells), without_ages(recorded), "{}", case["id"]);
                    compared += 1;
                }
                _ => {}
            }
        }
    }
    assert!(compared > 0, "the matrix holds no Tables");
}

/// The cells that kube-apiserver v1.36.2 answers for the same objects.
#[test]
fn built_in_kinds_show_what_kube_apiserver_shows() {
    let selector = json!({
        "matchLabels": {"z": "1", "a": "2"},
        "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["b", "a"]}, {"key": "e", "operator": "Exists"}],
    });
    let (hard, used) =
        (json!({"limits.cpu": "2", "requests.cpu": "1", "pods": "4"}), json!({"limits.cpu": "500m"}));
    let shown = "&LabelSelector{MatchLabels:map[string]string{a: 2,z: 1,},MatchExpressions:[]LabelSelectorRequirement{\
                 LabelSelectorRequirement{Key:k,Operator:In,Values:[b a],},\
                 LabelSelectorRequirement{Key:e,Operator:Exists,Values:[],},},}";
    let cases = [
        (
            "validatingadmissionpolicybindings",
            json!({"spec": {"policyName": "p", "paramRef": {"selector": selector}}}),
            json!(["n", "p", shown, "0s"]),
        ),
        (
            "validatingadmissionpolicybindings",
            json!({"spec": {"policyName": "p", "paramRef": {"selector": {}}}}),
            json!([
                "n",
                "p",
                "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}",
                "0s"
            ]),
        ),
        (
            "networkpolicies",
            json!({"spec": {"podSelector": selector}}),
            json!(["n", "a=2,e,k in (a,b),z=1", "0s"]),
        ),
        (
            "resourcequotas",
            json!({"status": {"hard": hard, "used": used}}),
            json!(["n", "pods: 0/4, requests.cpu: 0/1", "limits.cpu: 500m/2", "0s"]),
        ),
        ("limitranges", json!({}), json!(["n", "2026-11-21T12:00:00Z"])),
    ];
    let now = "2026-11-21T12:00:00Z";
    for (plural, mut object, cells) in cases {
        let rows = builtin_rows();
        let info = rows.iter().find(|row| row.plural == plural).expect("a built-in kind");
        object["metadata"] = json!({"name": "n", "creationTimestamp": now});
        let options = Options {
            include: Include::None,
            version: "v1",
            headers: true,
            now: now.parse().expect("a time"),
        };
        assert_eq!(render(info, &object, &options)["rows"][0]["cells"], cells, "{plural}");
    }
}

/// A row of the kind that a recorded definition defines, as far as Tables need it.
fn row(manifest: &Value) -> ResourceInfo {
    let columns = manifest.pointer("/spec/versions/0/additionalPrinterColumns").and_then(Value::as_array);
    let text = |column: &Value, name: &str| column[name].as_str().unwrap_or_default().to_owned();
    let columns = columns.into_iter().flatten().map(|column| PrinterColumn {
        name: text(column, "name"),
        kind: text(column, "type"),
        format: text(column, "format"),
        description: text(column, "description"),
        priority: column["priority"].as_i64().and_then(|priority| i32::try_from(priority).ok()).unwrap_or(0),
        json_path: text(column, "jsonPath"),
    });
    let any: Arc<ResourceInfo> = builtin_rows().remove(0);
    ResourceInfo { builtin: false, columns: columns.collect(), ..ResourceInfo::clone(&any) }
}

fn without_ages(cells: &Value) -> Vec<Value> {
    let is_age = |text: &str| {
        text == "<unknown>"
            || (text.ends_with(['s', 'd', 'y']) && text.starts_with(|c: char| c.is_ascii_digit()))
    };
    let cells = cells.as_array().expect("cells").iter();
    cells.map(|cell| if cell.as_str().is_some_and(is_age) { "AGE".into() } else { cell.clone() }).collect()
}
