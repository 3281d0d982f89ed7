//! Judging one release for each group of releases says what judging every release would.

use admit_analysis::releases::{Releases, judge};
use admit_policy::manifest::Document;
use admit_policy::{LoadOptions, PolicySet, manifest, release};

use crate::rows::{root, rows};

const OPTIONS: LoadOptions = LoadOptions { ignore_unknown: true };

fn definition(rule: &str) -> Document {
    let text = testing::definition(
        "things.example.com",
        "Thing",
        "Namespaced",
        &serde_json::json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}]}),
    );
    Document::unwritten("rule".into(), text)
}

/// What every single release says.
fn each(document: &Document, releases: &Releases) -> Vec<Vec<String>> {
    let load = |release: admit_analysis::releases::Release| {
        release::following(release.0, || PolicySet::load_with([document], OPTIONS))
    };
    releases
        .iter()
        .map(|release| {
            let errors = load(release).err().unwrap_or_default();
            let mut told: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
            told.sort();
            told.dedup();
            told
        })
        .collect()
}

fn agrees(document: &Document) {
    let releases = Releases::all();
    let report = judge(std::slice::from_ref(document), &releases, &|| false);
    let found: Vec<_> =
        report.files.iter().flat_map(|file| &file.documents).flat_map(|document| &document.found).collect();
    for (release, expected) in releases.iter().zip(each(document, &releases)) {
        if found.iter().any(|found| found.cause.as_str() == "not-served" && found.releases.contains(&release))
        {
            continue;
        }
        let here = found.iter().filter(|found| found.cause.refuses() && found.releases.contains(&release));
        let mut told: Vec<String> = here.map(|found| found.error.message.clone()).collect();
        told.sort();
        assert_eq!(told, expected, "{release}: {}", document.value);
    }
}

/// Every expression of the tables of costs, as a rule that is compiled and estimated.
#[test]
fn rules_are_judged_as_every_release_judges_them() {
    let mut seen = std::collections::HashSet::new();
    for [.., text] in rows::<6>("costs.tsv") {
        if seen.insert(text.clone()) {
            agrees(&definition(&format!("type({text}) == int || true")));
        }
    }
    for rule in [
        "self.metadata.name.startsWith('a')",
        "[1, 2].first().hasValue()",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "[1].all(i, v, i < v)",
        "optional.unwrap([optional.of(1)]) == [1]",
        "type(self) == net.IP",
        "duration('x') == duration('1s')",
        "[2, 1].sortBy(x, x) == [1, 2]",
        "self.metadata.name.includes('a')",
        "duration(1) == duration('1s')",
        "self.namespace == 'a'",
        "matches(self.metadata.name, 'a+')",
        "[self.metadata.name].map(x, x).exists(y, y in [self.metadata.name].filter(z, z != 'a'))",
    ] {
        agrees(&definition(rule));
    }
}

#[test]
fn shipped_documents_are_judged_as_every_release_judges_them() {
    let mut count = 0_u32;
    for folder in ["deploy/crds", "policies"] {
        let mut open = vec![root().join(folder)];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "yaml") {
                    let text = std::fs::read_to_string(&path).expect("a text");
                    let documents = manifest::read(&path.to_string_lossy(), &text).unwrap_or_default();
                    count += u32::try_from(documents.len()).unwrap_or(0);
                    documents.iter().for_each(agrees);
                }
            }
        }
    }
    assert!(count > 20, "{count}");
}
