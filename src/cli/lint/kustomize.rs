//! Finds the patches of kustomizations: parts of manifests that lie beside them and are not objects themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use admit_apimachinery::yaml;
use serde_json::Value;

use crate::cli::load::{self, Found};

/// The file names that kustomize looks for.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Returns the patches that kustomizations above `files` name, up to the folder `root`, each with the file that names it.
pub(super) fn patches(root: &Path, files: &[Found]) -> BTreeMap<PathBuf, String> {
    let above = files.iter().flat_map(|file| file.path.ancestors().skip(1));
    let folders: BTreeSet<&Path> = above.filter(|folder| folder.starts_with(root)).collect();
    let mut patches = BTreeMap::new();
    for folder in folders {
        for name in NAMES {
            let file = folder.join(name);
            // An unreadable kustomization names nothing: kustomize reports what is wrong with it.
            let Ok(text) = (Found { path: file.clone(), named: false }).text() else { continue };
            let shown = file.display().to_string();
            let documents = yaml::parse_values(&text).unwrap_or_default();
            for path in documents.iter().flat_map(|document| named(&document.value)) {
                patches.insert(load::normal(&folder.join(path)), shown.clone());
            }
        }
    }
    patches
}

/// Returns the paths that a kustomization names, alone or as the `path` of an entry. Inline patches are skipped.
fn named(kustomization: &Value) -> impl Iterator<Item = &str> {
    let lists = ["patches", "patchesStrategicMerge", "patchesJson6902"].into_iter();
    let entries = lists.filter_map(|list| kustomization.get(list)?.as_array()).flatten();
    let paths = entries.filter_map(|entry| entry.as_str().or_else(|| entry.get("path")?.as_str()));
    paths.filter(|path| !path.contains('\n'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_are_named_in_three_ways() {
        let kustomization = json!({
            "patches": [{"path": "a.yaml", "target": {"kind": "Service"}}, {"patch": "- op: remove"}],
            "patchesStrategicMerge": ["patches/b.yaml", "kind: Service\nmetadata: {name: a}"],
            "patchesJson6902": [{"path": "../c.yaml"}],
            "resources": ["d.yaml"],
        });
        assert_eq!(named(&kustomization).collect::<Vec<_>>(), ["a.yaml", "patches/b.yaml", "../c.yaml"]);
    }
}
