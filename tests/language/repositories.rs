//! Folders of whole repositories: what is told of documents of one name, of templates, and of what is no manifest.

use admit_language::lint::{Linted, Reading};
use admit_policy::lint::Severity;
use admit_policy::{Documents, LoadOptions};

/// Of files that were found in a folder.
fn linted(files: &[(&str, &str)]) -> Linted {
    let mut reading = Reading::allowing(&["no-binding".to_owned()]);
    for (name, text) in files {
        reading.file(name, (*text).to_owned(), false);
    }
    reading.lint(LoadOptions { ignore_unknown: true }, &Documents::default(), |_, _| {})
}

/// Severity, code, file and line of each finding.
fn told(files: &[(&str, &str)]) -> Vec<String> {
    let linted = linted(files);
    let told = linted.report.findings.iter().map(|finding| {
        let (severity, mistake) = (finding.severity.as_str(), &finding.mistake);
        format!("{severity} {} {}:{}", finding.code, mistake.file, mistake.position.line)
    });
    told.collect()
}

fn policy(name: &str, expression: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
  validations: [{{expression: {expression}}}]
"
    )
}

fn definition(group: &str, rule: &str) -> String {
    let spec = format!("spec: {{type: object, x-kubernetes-validations: [{{rule: '{rule}'}}]}}");
    testing::definition_text(&format!("widgets.{group}"), "Widget", "Cluster", &spec)
}

#[test]
fn each_of_one_name_is_looked_at() {
    let (right, wrong) = (policy("a", "object.metadata.name != ''"), policy("a", "object.metadata.nam +"));
    let (sound, broken) = (definition("a.io", "1 == 1"), definition("a.io", "self.b"));
    let files = [
        ("base/crd.yaml", definition("a.io", "true")),
        ("base/policy.yaml", right.clone()),
        ("base/same.yaml", right),
        ("base/wrong.yaml", wrong.clone()),
        ("overlay/broken.yaml", broken),
        ("overlay/crd.yaml", sound),
        ("overlay/policy.yaml", wrong),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    assert_eq!(
        told(&files),
        [
            "warning constant-rule base/crd.yaml:16",
            "note not-type-checked base/policy.yaml:6",
            "note duplicate base/same.yaml:1",
            "warning duplicate base/wrong.yaml:1",
            "error refused base/wrong.yaml:7",
            "note duplicate overlay/broken.yaml:1",
            "error refused overlay/broken.yaml:16",
            "note duplicate overlay/crd.yaml:1",
            "warning constant-rule overlay/crd.yaml:16",
            "note duplicate overlay/policy.yaml:1",
        ]
    );
}

/// Very many are bounded, and told: each policy is looked at among all others.
#[test]
fn more_policies_of_one_name_than_are_looked_at_are_told() {
    let text: Vec<String> =
        (0..12).map(|at| policy("a", &format!("object.metadata.name == '{at}' +"))).collect();
    let text = text.join("---\n");
    let linted = linted(&[("all.yaml", &text)]);
    let of = |code: &str| linted.report.findings.iter().filter(|finding| finding.code == code).count();
    assert_eq!((of("refused"), of("duplicate")), (8, 11));
    let last = linted.report.findings.last().unwrap();
    assert_eq!(last.severity, Severity::Warning);
    let says =
        "ValidatingAdmissionPolicy a: not looked at, as 8 others of this name are, the first at all.yaml:1";
    assert_eq!(last.mistake.message, says);
}

/// Each is held against those of its name before it.
#[test]
fn more_definitions_of_one_name_than_are_looked_at_are_told() {
    let text: Vec<String> = (0..1_003).map(|at| definition("a.io", &format!("self.size() > {at}"))).collect();
    let linted = linted(&[("all.yaml", &text.join("---\n"))]);
    let passed_over = |message: &str| message.contains("not looked at, as 1000 others of this name are");
    let told = linted.report.findings.iter().filter(|finding| passed_over(&finding.mistake.message));
    assert_eq!(told.count(), 3);
}

#[test]
fn objects_of_other_kinds_may_be_there_as_often_as_they_like() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}}";
    let job = "{apiVersion: batch/v1, kind: Job, metadata: {generateName: a-}}";
    let files = [("a/pod.yaml", pod), ("b/pod.yaml", pod), ("a/job.yaml", job), ("b/job.yaml", job)];
    assert_eq!(told(&files), [""; 0]);
}

#[test]
fn templates_are_told_by_chart() {
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: outer\n"),
        ("templates/a.yaml", "{{- if .Values.a }}\n"),
        ("charts/inner/Chart.yaml", "apiVersion: v2\nname: inner\n"),
        ("charts/inner/templates/deep/a.yaml", "a: {{ .Values.a }}\n"),
        ("charts/inner/templates/b.yaml", "a: {{ .Values.b }}\n"),
        ("charts/inner/templates/c.yaml", "a: {{ .Values.c }}\n"),
        ("charts/inner/values.yaml", "a: 1\n"),
    ];
    let linted = linted(&files);
    let told = linted.report.findings.iter().filter(|finding| finding.severity != Severity::Note);
    let told: Vec<_> =
        told.map(|finding| (finding.mistake.message.as_str(), finding.help.as_str())).collect();
    assert_eq!(
        told,
        [
            (
                "a template of the chart `.`, which was passed over: not YAML: \"-\" is only valid inside a block",
                "`helm template . | admit lint -` reads what they make"
            ),
            (
                "a template of the chart `charts/inner` like 2 others there, which was passed over: a map's key must be a scalar",
                "`helm template charts/inner | admit lint -` reads what they make"
            ),
        ]
    );
}

/// What was forgotten in a manifest is an error as before.
#[test]
fn half_a_manifest_is_an_error() {
    let files = [
        ("b.yaml", "kind: ConformanceReport\nmode: default\n"),
        (
            "c.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {conversion: {strategy: None}}\n",
        ),
        (
            "d.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: b}\n",
        ),
    ];
    let told = told(&files);
    let places = ["note no-manifest b.yaml:1", "note no-manifest c.yaml:1", "error refused d.yaml:1"];
    assert_eq!(told[..3], places);
    let mut reading = Reading::allowing(&[]);
    reading.file("a.yaml", "apiVersion: v1\nmetadata: {name: a}\n".to_owned(), false);
    let linted = reading.lint(LoadOptions::default(), &Documents::default(), |_, _| {});
    assert_eq!(linted.report.findings[0].mistake.message, "must have `apiVersion` and `kind`");
}
