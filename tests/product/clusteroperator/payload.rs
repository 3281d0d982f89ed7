//! Which manifests of a payload count (CO §4).

use std::collections::BTreeMap;
use std::convert::Infallible;

use admit::controllers::clusteroperator::payload::{Inclusion, Payload, Source, parse};

use super::bench::manifest;

fn parsed(files: &[(&str, &str)]) -> Payload {
    let texts =
        files.iter().map(|(name, text)| ((*name).to_owned(), Ok::<_, Infallible>((*text).to_owned())));
    parse(texts, &Inclusion::default())
}

fn names(payload: &Payload) -> Vec<&str> {
    payload.operators.iter().map(|operator| operator.name.as_str()).collect()
}

#[test]
fn co_04_documents_of_other_kinds_are_passed_over_and_mistakes_told_with_file_and_line() {
    let (a, b) = (manifest("a").to_string(), manifest("b").to_string());
    let many = format!("{a}\n---\nkind: Service\napiVersion: v1\nmetadata: {{}}\n---\n{b}\n");
    let nameless = "\n\napiVersion: config.openshift.io/v1\nkind: ClusterOperator\n";
    let bad = "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: c}\nstatus: {versions: 7}\n";
    let payload = parsed(&[
        ("1.yaml", &many),
        ("2.yaml", nameless),
        ("3.yaml", "a: ["),
        ("4.json", &a),
        ("5.yaml", bad),
    ]);
    assert_eq!(names(&payload), ["a", "b"]);
    let wrong: Vec<_> = payload.mistakes.iter().map(|text| text.split(": ").next().unwrap()).collect();
    assert_eq!(wrong.len(), 4, "{:#?}", payload.mistakes);
    for (place, file) in wrong.iter().zip(["2.yaml:3:", "3.yaml:", "4.json:1:", "5.yaml:1:"]) {
        assert!(place.starts_with(file), "{place} for {file}: {:#?}", payload.mistakes);
    }
    assert!(payload.mistakes[2].contains("`a` is there twice"), "{:#?}", payload.mistakes);
}

#[test]
fn co_04_related_resources_are_related_objects() {
    let text = manifest("a").to_string().replace("relatedObjects", "relatedResources");
    assert_eq!(parsed(&[("1.json", &text)]).operators[0].related.len(), 1);
}

#[test]
fn co_08_08_annotations_leave_manifests_out() {
    let inclusion = Inclusion {
        exclude: Some("here".to_owned()),
        capabilities: Some(["Console".to_owned(), "Samples".to_owned()].into()),
        feature_gates: ["On".to_owned()].into(),
        ..Inclusion::default()
    };
    let included = |annotations: &[(&str, &str)]| {
        let annotations: BTreeMap<_, _> =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        inclusion.includes(&annotations)
    };
    for (annotation, expected) in [
        (("include.release.openshift.io/self-managed-high-availability", "true"), true),
        (("include.release.openshift.io/self-managed-high-availability", "false"), false),
        (("include.release.openshift.io/single-node", "true"), false),
        (("exclude.release.openshift.io/here", "true"), false),
        (("exclude.release.openshift.io/elsewhere", "true"), true),
        (("capability.openshift.io/name", "Console+Samples"), true),
        (("capability.openshift.io/name", "Console+Storage"), false),
        (("release.openshift.io/feature-set", "Default,TechPreviewNoUpgrade"), true),
        (("release.openshift.io/feature-set", "TechPreviewNoUpgrade"), false),
        (("release.openshift.io/feature-gate", "On,-Off"), true),
        (("release.openshift.io/feature-gate", "Off"), false),
        (("release.openshift.io/feature-gate", "-On"), false),
        (("release.openshift.io/delete", "true"), false),
        (("example.dev/anything", "else"), true),
    ] {
        assert_eq!(included(&[annotation]), expected, "{annotation:?}");
    }
}

#[test]
fn a_folder_is_read_again_when_its_files_are_others_and_links_out_of_it_are_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("2.json", &manifest("b").to_string());
    write("1.yaml", &manifest("a").to_string());
    write("notes.txt", "none of ours");
    let mut source = Source::new(Some(folder.path()), Inclusion::default());
    assert_eq!(names(&source.read().unwrap()), ["a", "b"], "in order of the files' names");
    write("3.yml", &manifest("c").to_string());
    assert_eq!(names(&source.read().unwrap()), ["a", "b", "c"]);
    std::fs::write(outside.path().join("d.yaml"), manifest("d").to_string()).unwrap();
    std::os::unix::fs::symlink(outside.path().join("d.yaml"), folder.path().join("4.yaml")).unwrap();
    let payload = source.read().unwrap();
    assert_eq!(
        (names(&payload).len(), payload.mistakes.as_slice()),
        (3, ["4.yaml: is a link out of the payload".to_owned()].as_slice())
    );
    drop(folder);
    let error = source.read().unwrap_err().to_string();
    assert!(error.contains("name a folder of manifests"), "{error}");
}
