//! Every mistake of every document, each with its place.

use admit_policy::PolicySet;
use admit_policy::manifest;

fn errors(text: &str) -> Vec<String> {
    let documents = manifest::read("a.yaml", text).expect("the text is YAML");
    let errors = PolicySet::load(&documents).expect_err("something is wrong");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn all_mistakes_are_told() {
    let found = errors(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: Bad_Name}
spec:
  failurePolicy: Maybe
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, READ], resources: []}
  validations:
  - expression: object.metadata.name ==
    message: |
      two
      lines
  - expression: \"'text'\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {validationActions: [Deny, Warn]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: m}
",
    );
    let expected = [
        "a.yaml:3:12: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain",
        "a.yaml:5:3: spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
        "a.yaml:8:56: spec.matchConstraints.resourceRules[0].operations[1]: Unsupported value: \"READ\"",
        "a.yaml:8:72: spec.matchConstraints.resourceRules[0].resources: Required value",
        "a.yaml:10:5: spec.validations[0].expression: Invalid value: \"object.metadata.name ==\": compilation failed",
        "a.yaml:11:5: spec.validations[0].message: Invalid value: \"two\\nlines\\n\": must not contain line breaks",
        "a.yaml:14:5: spec.validations[1].expression: Invalid value: \"'text'\": must evaluate to bool but got string",
        "a.yaml:19:1: spec.policyName: Required value",
        "a.yaml:19:8: spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both",
        "a.yaml:21:1: spec.matchConstraints: Required value",
        "a.yaml:21:1: spec.mutations: Required value: mutations must contain at least one item",
        "a.yaml:21:1: spec.reinvocationPolicy: Required value",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        // Columns within a flow mapping are the loader's affair; what counts is the line and the text.
        let (place, text) = expected.split_once(": ").expect("a place and a text");
        let line = place.rsplit_once(':').map_or(place, |(line, _)| line);
        assert!(
            found.starts_with(&format!("{line}:")) && found.contains(text),
            "{found}\nis not\n{expected}"
        );
    }
}

#[test]
fn kinds_that_nothing_uses_are_refused() {
    let found = errors("{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}}");
    assert_eq!(found, ["a.yaml:1:1: v1 ConfigMap: no policy uses objects of this kind as params"]);
    let found = errors("{kind: ConfigMap}");
    assert_eq!(found, ["a.yaml:1:1: must have `apiVersion` and `kind`"]);
}
