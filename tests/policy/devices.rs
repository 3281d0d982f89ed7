//! Selectors of devices: the reference's own table, and what slices, classes and claims select.

use admit_policy::{
    Device, DeviceFeatures, Devices, EvalOptions, NoSelection, SelectedBy, Selector, manifest,
    selector_problem,
};
use serde_json::{Value, json};

fn rows() -> Vec<Value> {
    let documents = manifest::read("devices.yaml", include_str!("data/devices.yaml")).expect("is read");
    documents[0].value["cases"].as_array().expect("rows").clone()
}

/// What differs from the row under one setting of the gate of lists.
/// The text of an error that does not have these words.
fn apart(error: &dyn std::error::Error, words: &str) -> Option<String> {
    let told = error.to_string();
    (!told.contains(words)).then_some(told)
}

fn difference(row: &Value, list_attributes: bool) -> Option<String> {
    let text = |key: &str| row[key].as_str();
    let consumable_capacity = row["shared"] == true;
    let features = DeviceFeatures { consumable_capacity, list_attributes };
    let compiled = Selector::compile(text("expression").expect("an expression"), features);
    let selector = match (compiled, text("compile")) {
        (Err(why), Some(words)) => return apart(&why, words),
        (Err(why), None) => return Some(why.to_string()),
        (Ok(_), Some(_)) => return Some("compiles".to_owned()),
        (Ok(selector), None) => selector,
    };
    if Some(selector.max_cost()) != row["cost"].as_u64() {
        return Some(format!("costs {}", selector.max_cost()));
    }
    let device = Device::read(text("driver").unwrap_or_default(), "pool", &row["device"]).expect("a device");
    match (selector.matches(&device, EvalOptions::default()), text("error")) {
        (Ok(matches), None) => (row["matches"] != matches).then(|| format!("matches: {matches}")),
        (Err(why), Some(words)) => apart(&why, words),
        (found, _) => Some(format!("{found:?}")),
    }
}

#[test]
fn devices_are_selected_as_by_the_reference() {
    let rows = rows();
    let (mut runs, mut wrong) = (0, Vec::new());
    for row in &rows {
        let settings: &[bool] = match &row["lists"] {
            Value::Bool(true) => &[true],
            Value::Bool(false) => &[false],
            _ => &[false, true],
        };
        for lists in settings {
            runs += 1;
            wrong.extend(
                difference(row, *lists).map(|why| format!("{} (lists: {lists}): {why}", row["name"])),
            );
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!((rows.len(), runs), (69, 106));
}

const DOCUMENTS: &str = r#"
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-gpu}
spec:
  driver: gpu.example.com
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: small, attributes: {cores: {int: 8}, model: {string: T4}}, capacity: {memory: {value: 16Gi}}}
  - {name: big, attributes: {cores: {int: 64}, firmware: {version: 2.10.0}}, capacity: {memory: {value: 80Gi}}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: node-2-nic}
spec:
  driver: nic.example.com
  pool: {name: node-2}
  devices: [{name: nic, basic: {attributes: {gpu.example.com/cores: {int: 1}}}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == 'gpu.example.com'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: broken}
spec: {selectors: [{cel: {expression: 'true'}}, {cel: {expression: device.drivers}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: work, namespace: shop}
spec:
  devices:
    requests:
    - name: any
      exactly:
        deviceClassName: gpu
        selectors: [{cel: {expression: "device.attributes['gpu.example.com'].cores >= 8"}}]
    - name: choice
      firstAvailable:
      - name: new
        deviceClassName: gpu
        selectors: [{cel: {expression: "device.attributes['gpu.example.com'].firmware.isGreaterThan(semver('2.9.9'))"}}]
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: any, deviceClassName: gpu}]}}}
"#;

/// The names of what is selected, with what is not known of others.
fn selected(by: SelectedBy<'_>) -> Result<Vec<String>, String> {
    let documents = manifest::read("devices.yaml", DOCUMENTS).expect("is read");
    let values = documents.iter().map(|document| &document.value);
    let devices = Devices::read(values, DeviceFeatures::default()).expect("devices");
    let selected = devices.select(&by, EvalOptions::default()).map_err(|error| error.to_string())?;
    let shown = selected.into_iter().filter_map(|one| match one.matches {
        Ok(true) => Some(one.device.to_string()),
        Ok(false) => None,
        Err(why) => Some(format!("{}: {why}", one.device.name)),
    });
    Ok(shown.collect())
}

#[test]
fn classes_and_claims_select_devices() {
    let (small, big) = ("gpu.example.com/node-1/small", "gpu.example.com/node-1/big");
    let class = |class| SelectedBy { class: Some(class), ..SelectedBy::default() };
    let claim = |claim, request| SelectedBy { claim: Some(claim), request, ..SelectedBy::default() };
    let found = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(selected(class("gpu")), found(&[small, big]));
    assert_eq!(selected(claim("one", None)), found(&[small, big]));
    assert_eq!(selected(claim("shop/work", Some("any"))), found(&[small, big]));
    let failed = "small: claim shop/work: selector #0: CEL runtime error: no such key: firmware";
    assert_eq!(selected(claim("shop/work", Some("choice/new"))), found(&[failed, big]));
    let cores = ["'cores' in device.attributes['gpu.example.com']".to_owned()];
    let by_hand = SelectedBy { selectors: &cores, ..SelectedBy::default() };
    assert_eq!(selected(by_hand), found(&[small, big, "nic.example.com/node-2/nic"]));
}

#[test]
fn what_selects_is_there_and_compiles() {
    let why = |by| selected(by).expect_err("selects nothing");
    let class = |class| SelectedBy { class: Some(class), ..SelectedBy::default() };
    let claim = |claim, request| SelectedBy { claim: Some(claim), request, ..SelectedBy::default() };
    assert_eq!(why(class("none")), "could not find device class none");
    let broken = why(class("broken"));
    let words = "class broken: selector #1: CEL compile error: compilation failed: ERROR: <input>:1:7: undefined field 'drivers'";
    assert!(broken.starts_with(words), "{broken}");
    assert!(
        why(claim("work", None)).starts_with("there is no ResourceClaim or ResourceClaimTemplate `work`")
    );
    let requests = "claim shop/work has no request ``; these are: any, choice/new";
    assert_eq!(why(claim("shop/work", None)), requests);
    let wrong = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": {"devices": [{"capacity": {"a": {}}}]}});
    let read = Devices::read([&wrong], DeviceFeatures::default());
    let Err(NoSelection::Document(error)) = read else { panic!("is read") };
    assert!(error.to_string().starts_with("spec.devices[0].capacity.a: must have a `value`"), "{error}");
}

/// What comes of a selector may be of any type.
#[test]
fn attributes_are_no_truth_values_by_themselves() {
    let device = json!({"name": "a", "attributes": {"text": {"string": "x"}, "count": {"int": 1}, "v": {"version": "v1"}}});
    let device = Device::read("d", "pool", &device).expect("a device");
    let why = |text: &str| {
        let selector = Selector::compile(text, DeviceFeatures::default()).expect("compiles");
        selector.matches(&device, EvalOptions::default()).expect_err("no truth value").to_string()
    };
    // Every attribute is looked at, whatever the selector asks for.
    assert!(why("true").starts_with("attribute v: parse semantic version: "), "{}", why("true"));
    let device = json!({"name": "a", "attributes": {"text": {"string": "x"}, "count": {"int": 1}}});
    let device = Device::read("d", "pool", &device).expect("a device");
    let why = |text: &str| {
        let selector = Selector::compile(text, DeviceFeatures::default()).expect("compiles");
        selector.matches(&device, EvalOptions::default()).expect_err("no truth value").to_string()
    };
    assert_eq!(
        why("device.attributes['d'].text"),
        "CEL result of type string could not be converted to bool: unsupported native conversion from string to 'bool'"
    );
    assert_eq!(
        why("device.attributes['d'].count"),
        "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool"
    );
    assert!(
        selector_problem("device.attributes['d'].list.exists(x, x == 1)").is_some(),
        "no list in this release"
    );
    assert!(selector_problem("dyn(device.driver)").is_some(), "what comes of it is not known");
}
