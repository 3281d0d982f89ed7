//! Warns about files of one volume of which one hides another, or stands where another has a directory
//! (pkg/api/pod/warnings.go, `warningsForOverlappingVirtualPaths`).

use std::collections::HashMap;
use std::rc::Rc;

use admit_apimachinery::findings::MAX_FINDINGS;
use admit_apimachinery::go;
use serde_json::Value;

use crate::kinds::field::Field;

/// Longer warnings than this are cut before they are sent (apiserver `pkg/endpoints/filters/warning.go`), so that of longer paths no
/// more is needed.
const MOST_SHOWN: usize = 4096;

/// Most directories that the paths of one volume are followed through: longer ones are not compared, which no file system could hold.
const MOST_STEPS: usize = 1 << 16;

/// A file in a volume, and which source of a projected volume it comes from.
struct File<'o> {
    path: &'o str,
    source: Option<Rc<str>>,
}

pub(super) fn warn(volumes: &Field<'_>, warnings: &mut Vec<String>) {
    for volume in volumes.items() {
        let name = go::quote(volume.get("name").text());
        let own = [
            ("configMap", "name", "ConfigMap "),
            ("secret", "secretName", "Secret "),
            ("downwardAPI", "", "DownwardAPI"),
        ];
        for (kind, named, told) in own {
            let source = volume.get(kind);
            let told = if named.is_empty() {
                told.to_owned()
            } else {
                format!("{told}{}", quoted(&source.get(named)))
            };
            collisions(&items(&source, None), &format!("volume {name} ({told})"), warnings);
        }
        let mut files = Vec::new();
        for source in volume.get("projected").get("sources").items() {
            let is_empty =
                source.value().as_object().is_none_or(|members| members.values().all(Value::is_null));
            if is_empty && warnings.len() < MAX_FINDINGS {
                warnings.push(format!("volume {name} (Projected) has no sources provided"));
            }
            files.extend(projected(&source));
        }
        collisions(&files, &format!("volume {name} (Projected)"), warnings);
    }
}

fn quoted(text: &Field<'_>) -> String {
    go::quote(shortened(text.text()))
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MOST_SHOWN)).unwrap_or(text)
}

fn items<'o>(source: &Field<'o>, told: Option<&str>) -> Vec<File<'o>> {
    let told = told.map(Rc::from);
    let file = |item: Field<'o>| File { path: item.get("path").text(), source: told.clone() };
    source.get("items").items().map(file).collect()
}

/// The files of one source of a projected volume. Of several sources in one, the first counts.
fn projected<'o>(source: &Field<'o>) -> Vec<File<'o>> {
    for (kind, told) in [("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")] {
        let own = source.get(kind);
        if own.get("items").is_set() {
            let name =
                if kind == "downwardAPI" { String::new() } else { format!(" {}", quoted(&own.get("name"))) };
            return items(&own, Some(&format!("{told}{name}")));
        }
    }
    let file = |path: Field<'o>, told: String| File { path: path.text(), source: Some(told.into()) };
    let (token, bundle) = (source.get("serviceAccountToken"), source.get("clusterTrustBundle"));
    if token.is_set() {
        return vec![file(token.get("path"), "ServiceAccountToken".to_owned())];
    }
    if bundle.is_set() {
        let name = if bundle.get("name").is_set() { bundle.get("name") } else { bundle.get("signerName") };
        return vec![file(bundle.get("path"), format!("ClusterTrustBundle {}", quoted(&name)))];
    }
    let certificate = source.get("podCertificate");
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    parts.into_iter().map(|(part, told)| file(certificate.get(part), told.to_owned())).collect()
}

/// Where files are: a directory for each step of a path, so that work and memory grow with the length of the paths.
#[derive(Default)]
struct Directory {
    /// The files that have this very path, by their places.
    files: Vec<usize>,
    /// Those and all files below.
    all: Vec<usize>,
}

fn collisions(files: &[File<'_>], volume: &str, warnings: &mut Vec<String>) {
    let mut directories = vec![Directory::default()];
    let mut steps: HashMap<(usize, &str), usize> = HashMap::new();
    let mut left = MOST_STEPS;
    for (place, file) in files.iter().enumerate() {
        let path = file.path.trim_end_matches('/');
        let depth = path.split('/').count();
        if path.is_empty() || depth > left {
            continue;
        }
        left -= depth;
        let room = MAX_FINDINGS.saturating_sub(warnings.len());
        let (mut at, mut way, mut met) = (0, Vec::new(), Vec::<usize>::new());
        for step in path.split('/') {
            met.extend(directories.get(at).into_iter().flat_map(|above| &above.files).take(room));
            at = *steps.entry((at, step)).or_insert(directories.len());
            if at == directories.len() {
                directories.push(Directory::default());
            }
            way.push(at);
        }
        met.extend(directories.get(at).into_iter().flat_map(|same| &same.all).take(room));
        met.sort_unstable();
        let told =
            |other: &File<'_>| format!("{volume}: overlapping paths: {} with {}", shown(file), shown(other));
        warnings.extend(met.into_iter().take(room).filter_map(|other| files.get(other)).map(told));
        for directory in way {
            directories.get_mut(directory).into_iter().for_each(|directory| directory.all.push(place));
        }
        directories.get_mut(at).into_iter().for_each(|directory| directory.files.push(place));
    }
}

fn shown(file: &File<'_>) -> String {
    let path = go::quote(shortened(file.path.trim_end_matches('/')));
    file.source.as_ref().map_or_else(|| path.clone(), |source| format!("{path} ({source})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(volume: &Value) -> Vec<String> {
        let spec = json!({"volumes": [volume]});
        let mut warnings = Vec::new();
        warn(&Field::root(&spec).get("volumes"), &mut warnings);
        warnings
    }

    #[test]
    fn files_that_hide_one_another_are_told_of() {
        let items =
            |paths: &[&str]| paths.iter().map(|path| json!({"key": "k", "path": path})).collect::<Value>();
        let map = told(
            &json!({"name": "v", "configMap": {"name": "m", "items": items(&["a/b", "a/b/", "a/bc", "a", ""])}}),
        );
        assert_eq!(
            map,
            [
                r#"volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a/b""#,
                r#"volume "v" (ConfigMap "m"): overlapping paths: "a" with "a/b""#,
                r#"volume "v" (ConfigMap "m"): overlapping paths: "a" with "a/b""#,
                r#"volume "v" (ConfigMap "m"): overlapping paths: "a" with "a/bc""#,
            ]
        );
        let projected = told(&json!({"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}}, {}, {"secret": {"name": "s", "items": items(&["t/x"])}},
            {"configMap": {"name": "all"}},
        ]}}));
        assert_eq!(
            projected,
            [
                r#"volume "v" (Projected) has no sources provided"#,
                r#"volume "v" (Projected): overlapping paths: "t/x" (Secret "s") with "t" (ServiceAccountToken)"#,
            ]
        );
        assert!(
            told(&json!({"name": "v", "secret": {"secretName": "s", "items": items(&["a", "b/a", "ab"])}}))
                .is_empty()
        );
    }

    #[test]
    fn many_files_of_one_path_make_no_more_warnings_than_are_sent() {
        let items: Value = (0..5_000).map(|_| json!({"key": "k", "path": "a/b"})).collect();
        assert_eq!(told(&json!({"name": "v", "downwardAPI": {"items": items}})).len(), MAX_FINDINGS);
        let sources: Value = (0..5_000).map(|_| json!({})).collect();
        assert_eq!(told(&json!({"name": "v", "projected": {"sources": sources}})).len(), MAX_FINDINGS);
        let deep = "a/".repeat(MOST_STEPS);
        let items = ["b", &deep, &deep, "b"].map(|path| json!({"key": "k", "path": path}));
        assert_eq!(told(&json!({"name": "v", "downwardAPI": {"items": items}})).len(), 1);
    }
}
