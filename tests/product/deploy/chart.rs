//! The chart, rendered with its own values, is the base. Helm itself is not needed for that: the chart's templates keep to
//! the few forms that are understood here, and a form that is not fails the test. `helm` holds this reader against the real
//! one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{base, documents};
use crate::repository::root;
use crate::support::json_schema::complaints;

/// By name, as text.
pub(super) struct Values(BTreeMap<String, String>);

/// Every way to have certificates, with and without what depends on it, and each other setting that is not the default.
pub(super) const SETTINGS: &[&[&str]] = &[
    &[],
    &["monitoring=true"],
    &["certificates=self-managed"],
    &["certificates=self-managed", "monitoring=true"],
    &["certificates=cert-manager"],
    &["certificates=cert-manager", "monitoring=true"],
    &["certificates=cert-manager", "watchCluster=false"],
    &["watchCluster=false"],
    &["watchCluster=false", "monitoring=true"],
    &["clusterExceptions=true"],
    &["callers=client-certificate", "clientSubject=system:apiserver"],
    &["apiServers=10.0.0.4/32,fd00::/8"],
    &["image=registry.example:5000/admit:2", "replicas=3", "failurePolicy=Ignore"],
];

#[test]
fn the_chart_says_what_the_base_says() {
    for settings in SETTINGS {
        let folder = base(settings);
        let deploy = folder.path().join("deploy");
        let values = Values::of(&deploy.join("chart"), settings);
        let mut chart = rendered(&deploy.join("chart"), &values);

        let mut expected = listed(&deploy);
        if values.0["monitoring"] == "true" {
            expected.extend(listed(&deploy.join("monitoring")));
        }
        let key = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
        // The one by `--create-namespace`, the other from the folder `crds`, which is a link.
        expected.remove(&key("Namespace", "admit-system")).unwrap();
        let policies = chart.remove(&key("ConfigMap", "admit-policies")).unwrap();
        assert_eq!(policies["data"], listed_policies(&folder.path().join("policies")));

        assert!(expected.len() > 15, "{:?}", expected.keys());
        assert_eq!(chart.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{settings:?}");
        for (key, document) in &expected {
            assert_eq!(&chart[key], document, "{settings:?}: {key:?}");
        }
    }
}

/// What [`Values::of`] and the program take, the chart's schema takes; and it is a schema of nothing less.
#[test]
fn the_schema_allows_the_settings_that_there_are() {
    let schema = fs::read_to_string(root().join("deploy/chart/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let defaults = yaml(&root().join("deploy/chart/values.yaml"));
    assert_eq!(complaints(&schema, &defaults), Vec::<String>::new());
    let with = |changes: &[(&str, Value)]| {
        let mut values = defaults.clone();
        for (name, value) in changes {
            values[name] = value.clone();
        }
        values
    };
    let unwatched = [("certificates", json!("self-managed")), ("watchCluster", json!(false))];
    let refused = [
        with(&[("certificates", json!("none"))]),
        with(&[("image", json!("a b"))]),
        with(&[("replicas", json!(0))]),
        with(&[("size", json!(1))]),
        with(&[("apiServers", json!("everywhere"))]),
        with(&[("callers", json!("friends"))]),
        with(&unwatched),
        with(&[("clusterExceptions", json!(true)), ("watchCluster", json!(false))]),
    ];
    for values in refused {
        assert_ne!(complaints(&schema, &values), Vec::<String>::new(), "{values}");
    }
    assert_eq!(complaints(&schema, &with(&unwatched[..1])), Vec::<String>::new());
}

#[test]
fn the_chart_finds_definitions_and_policies_through_its_links() {
    let chart = root().join("deploy/chart");
    for (link, file) in [("crds", "datagathers.yaml"), ("policies", "datagather/analysis.yaml")] {
        assert!(chart.join(link).is_symlink() && chart.join(link).join(file).is_file(), "{link}");
    }
    // Helm installs whatever lies in `crds`, and refuses what is no definition.
    let ignored = fs::read_to_string(chart.join(".helmignore")).unwrap();
    for entry in fs::read_dir(chart.join("crds")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if ignored.lines().any(|line| line == name) {
            continue;
        }
        let text = fs::read_to_string(chart.join("crds").join(&name)).unwrap();
        let kinds: Vec<_> = documents(&text).into_keys().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["CustomResourceDefinition"], "{name}");
    }
}

/// The documents of the files that a kustomization lists, those of other folders left out.
fn listed(folder: &Path) -> BTreeMap<(String, String), Value> {
    let list = yaml(&folder.join("kustomization.yaml"));
    let names = list["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let files = names.filter(|name| name.ends_with(".yaml"));
    files.flat_map(|name| documents(&fs::read_to_string(folder.join(name)).unwrap())).collect()
}

/// The `data` that kustomize makes of the list beside the policies.
fn listed_policies(folder: &Path) -> Value {
    let list = yaml(&folder.join("kustomization.yaml"));
    let entries = list["configMapGenerator"][0]["files"].as_array().unwrap();
    assert!(entries.len() > 40, "only {} policies are listed", entries.len());
    let data = entries.iter().map(|entry| {
        let (key, path) = entry.as_str().unwrap().split_once('=').unwrap();
        (key.to_owned(), fs::read_to_string(folder.join(path)).unwrap().into())
    });
    Value::Object(data.collect())
}

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

impl Values {
    /// The chart's own, but for `settings`, as `NAME=VALUE`.
    pub(super) fn of(chart: &Path, settings: &[&str]) -> Self {
        let values = yaml(&chart.join("values.yaml"));
        let text_of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let defaults = values.as_object().unwrap().iter().map(|(name, value)| (name.clone(), text_of(value)));
        let mut values: BTreeMap<String, String> = defaults.collect();
        for setting in settings {
            let (name, value) = setting.split_once('=').unwrap();
            assert!(values.insert(name.to_owned(), value.to_owned()).is_some(), "the chart has no {name}");
        }
        Self(values)
    }
}

pub(super) fn rendered(chart: &Path, values: &Values) -> BTreeMap<(String, String), Value> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(chart.join("templates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().map(|file| render(chart, &fs::read_to_string(file).unwrap(), values));
    texts.flat_map(|text| documents(&text)).collect()
}

/// Renders the forms `{{ .Values.NAME }}`, `{{ .Release.Namespace }}`, `{{ "…" }}`, `{{ .Files.Get "…" | toJson }}` and
/// lines of `{{- if eq (toString .Values.NAME) "…" }}` … `{{- end }}`, `ne` for `eq`, and a `range` of the parts of a value.
fn render(chart: &Path, template: &str, values: &Values) -> String {
    let mut out = String::new();
    let mut open = Vec::new();
    let mut lines = template.lines();
    while let Some(line) = lines.next() {
        let compared =
            ["eq", "ne"].map(|how| line.strip_prefix(&format!("{{{{- if {how} (toString .Values.")));
        if let Some(condition) = compared[0].or(compared[1]) {
            let (name, rest) = condition.split_once(") \"").unwrap();
            let equal = values.0[name] == rest.strip_suffix("\" }}").unwrap();
            open.push(equal == compared[0].is_some());
        } else if let Some(range) = line.strip_prefix("{{- range splitList \",\" (toString .Values.") {
            let name = range.strip_suffix(") }}").unwrap();
            let repeated: Vec<&str> = lines.by_ref().take_while(|line| *line != "{{- end }}").collect();
            if open.iter().all(|holds| *holds) {
                for item in values.0[name].split(',') {
                    repeated.iter().for_each(|line| out.push_str(&(line.replace("{{ . }}", item) + "\n")));
                }
            }
        } else if line == "{{- end }}" {
            open.pop().unwrap();
        } else if open.iter().all(|holds| *holds) {
            out.push_str(&actions(chart, line, values));
            out.push('\n');
        }
    }
    assert!(open.is_empty(), "an `if` without `end`");
    out
}

fn actions(chart: &Path, line: &str, values: &Values) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("{{ ") {
        let (action, after) = after.split_once(" }}").unwrap();
        out.push_str(before);
        if let Some(name) = action.strip_prefix(".Values.") {
            out.push_str(&values.0[name]);
        } else if let Some(get) = action.strip_prefix(".Files.Get \"") {
            let path = get.strip_suffix("\" | toJson").unwrap();
            let text = fs::read_to_string(chart.join(path)).unwrap();
            out.push_str(&Value::from(text).to_string());
        } else if let Some(text) = action.strip_prefix('"') {
            out.push_str(text.strip_suffix('"').unwrap());
        } else {
            assert_eq!(action, ".Release.Namespace", "the test does not know this form");
            out.push_str("admit-system");
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
