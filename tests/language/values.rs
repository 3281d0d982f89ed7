//! What a run of a case made of expressions stands beside their lines: also with params, and in rules about changes.

use admit_language::{Encoding, Workspace};
use admit_policy::suite::{Suite, run_recorded};
use admit_policy::{Documents, Keep, LoadOptions, PolicySet, Recording, manifest};
use serde_json::{Value, json};

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
  variables:
  - name: most
    expression: int(params.data.most)
  validations:
  - expression: size(object.metadata.name) <= variables.most
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec:
  policyName: few
  validationActions: [Deny]
  paramRef: {name: few, namespace: default, parameterNotFoundAction: Deny}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: few, namespace: default}
data: {most: '3'}
";

const PROPERTIES: &str = "spec:
  type: object
  properties:
    size:
      type: integer
      x-kubernetes-validations:
      - rule: self >= oldSelf
    names:
      type: array
      items:
        type: string
        maxLength: 9
  x-kubernetes-validations:
  - rule: >-
      self.names.size() >=
      oldSelf.names.size()
";

/// The lines that have values beside them after the case was run, each with these.
fn beside(text: &str, case: &Value) -> Vec<(String, String)> {
    let documents = manifest::read("a.yaml", text).expect("manifests");
    let set = PolicySet::load(&documents).expect("policies");
    let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [case]});
    let suite = Suite::decode(&suite).expect("a suite");
    let recording = Recording::new(Keep::TRACES);
    let result = run_recorded(&suite.cases[0], &set, &recording);
    assert!(result.passed(), "{result:?}");
    let mut workspace =
        Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
    workspace.open("a.yaml", text.to_owned());
    workspace.ran(recording.finish().into_iter().collect());
    let line = |line: u32| text.lines().nth(line as usize).unwrap_or_default().trim().to_owned();
    workspace.values("a.yaml").into_iter().map(|(place, values)| (line(place.line), values)).collect()
}

fn expect(found: &[(String, String)], line: &str, values: &str) {
    let there = found.iter().find(|(known, _)| known == line);
    assert_eq!(there.map(|(_, values)| values.as_str()), Some(values), "{line}: {found:?}");
}

#[test]
fn policies_with_params_show_what_came_of_these() {
    let object =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "abc", "namespace": "default"}});
    let found = beside(POLICY, &json!({"name": "a", "object": object, "expect": {"outcome": "allow"}}));
    expect(
        &found,
        "expression: int(params.data.most)",
        "params.data.most = \"3\", int(params.data.most) = 3",
    );
    expect(
        &found,
        "- expression: size(object.metadata.name) <= variables.most",
        "object.metadata.name = \"abc\", size(object.metadata.name) = 3, variables.most = 3, \
         size(object.metadata.name) <= variables.most = true",
    );
}

#[test]
fn rules_about_changes_show_old_and_new() {
    let shop = |size: u32, names: &[&str]| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a", "namespace": "b"},
            "spec": {"size": size, "names": names},
        })
    };
    let case = json!({
        "name": "a", "operation": "UPDATE", "object": shop(3, &["x", "y"]), "oldObject": shop(2, &["x"]),
        "expect": {"outcome": "allow"},
    });
    let found = beside(&testing::shops(PROPERTIES), &case);
    expect(&found, "- rule: self >= oldSelf", "self = 3, oldSelf = 2, self >= oldSelf = true");
    expect(&found, "self.names.size() >=", "self.names.size() = 2");
    expect(
        &found,
        "oldSelf.names.size()",
        "oldSelf.names.size() = 1, self.names.size() >= oldSelf.names.size() = true",
    );
}
