//! The chart, rendered with its own values, is the base. Helm itself is not needed for that: the chart's templates keep to
//! the few forms that are understood here, and a form that is not fails the test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CERTIFICATES, base, documents};
use crate::repository::root;

type Values = BTreeMap<String, String>;

#[test]
fn the_chart_says_what_the_base_says() {
    let watching = CERTIFICATES.iter().map(|certificates| (*certificates, "true"));
    for (certificates, watch) in watching.chain([("secret", "false")]) {
        for monitoring in ["false", "true"] {
            let settings = [
                format!("certificates={certificates}"),
                format!("watchCluster={watch}"),
                format!("monitoring={monitoring}"),
            ];
            let folder = base(&settings.each_ref().map(String::as_str));
            let deploy = folder.path().join("deploy");
            let mut values = defaults(&deploy.join("chart"));
            values.insert("certificates".to_owned(), certificates.to_owned());
            values.insert("watchCluster".to_owned(), watch.to_owned());
            values.insert("monitoring".to_owned(), monitoring.to_owned());
            let mut chart = rendered(&deploy.join("chart"), &values);

            let mut expected = listed(&deploy);
            if monitoring == "true" {
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
    let list: Value =
        serde_saphyr::from_str(&fs::read_to_string(folder.join("kustomization.yaml")).unwrap()).unwrap();
    let names = list["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let files = names.filter(|name| name.ends_with(".yaml"));
    files.flat_map(|name| documents(&fs::read_to_string(folder.join(name)).unwrap())).collect()
}

/// The `data` that kustomize makes of the list beside the policies.
fn listed_policies(folder: &Path) -> Value {
    let list = fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
    let list: Value = serde_saphyr::from_str(&list).unwrap();
    let entries = list["configMapGenerator"][0]["files"].as_array().unwrap();
    assert!(entries.len() > 40, "only {} policies are listed", entries.len());
    let data = entries.iter().map(|entry| {
        let (key, path) = entry.as_str().unwrap().split_once('=').unwrap();
        (key.to_owned(), fs::read_to_string(folder.join(path)).unwrap().into())
    });
    Value::Object(data.collect())
}

fn defaults(chart: &Path) -> Values {
    let text = fs::read_to_string(chart.join("values.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&text).unwrap();
    let text_of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    values.as_object().unwrap().iter().map(|(name, value)| (name.clone(), text_of(value))).collect()
}

fn rendered(chart: &Path, values: &Values) -> BTreeMap<(String, String), Value> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(chart.join("templates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().map(|file| render(chart, &fs::read_to_string(file).unwrap(), values));
    texts.flat_map(|text| documents(&text)).collect()
}

/// Renders the forms `{{ .Values.NAME }}`, `{{ .Release.Namespace }}`, `{{ "…" }}`, `{{ .Files.Get "…" | toJson }}` and
/// lines of `{{- if eq (toString .Values.NAME) "…" }}` … `{{- end }}`.
fn render(chart: &Path, template: &str, values: &Values) -> String {
    let mut out = String::new();
    let mut open = Vec::new();
    for line in template.lines() {
        if let Some(condition) = line.strip_prefix("{{- if eq (toString .Values.") {
            let (name, rest) = condition.split_once(") \"").unwrap();
            open.push(values[name] == rest.strip_suffix("\" }}").unwrap());
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
            out.push_str(&values[name]);
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
