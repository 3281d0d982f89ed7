//! What a case of a `*.testsuite.yaml` means: steps, texts of other releases, gates, patches.

use std::sync::Arc;

use admit_policy::suite::crd::{CrdSuite, FeatureGates, Variant, run};
use admit_policy::suite::{CaseResult, Outcome};

use crate::support::yaml;

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec:
  group: example.dev
  names: {kind: Widget, plural: widgets}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: 'self.size != 3', message: not three}]
            properties:
              weight: {type: integer, format: int32}
              size: {type: integer, default: 1, x-kubernetes-validations: [{rule: 'self < 10', message: less than ten}]}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}}}
          status: {type: object, properties: {phase: {type: string, enum: [Ready]}}}
";

fn suite(tests: &str) -> CrdSuite {
    let text = format!("crdName: widgets.example.dev\ntests:\n{tests}");
    CrdSuite::decode(&yaml(&text)[0]).expect("the suite is right")
}

fn widget(rest: &str) -> String {
    format!("'{{apiVersion: example.dev/v1, kind: Widget, {}}}'", rest.replace('\'', "''"))
}

fn result(tests: &str) -> CaseResult {
    let suite = suite(tests);
    let variant = Variant::compile("crd.yaml", Arc::new(yaml(CRD)[0].clone()), &suite.version)
        .expect("the definition compiles");
    run(&suite.cases[0], &[&variant], None)
}

fn create(spec: &str, expectation: &str) -> CaseResult {
    result(&format!(
        "  onCreate: [{{name: a, initial: {}, {expectation}}}]",
        widget(&format!("spec: {spec}"))
    ))
}

#[test]
fn expected_texts_agree_but_for_the_printing_of_values() {
    for (spec, text, agrees) in [
        ("{size: 12}", "spec.size: Invalid value: 12: less than ten", true),
        ("{size: 12}", "spec.size: Invalid value: \"integer\": less than ten", true),
        ("{size: 12}", "Invalid value: \"integer\": less", true),
        ("{size: 12}", "spec.size: Invalid value: \"string\": less than ten", false),
        ("{size: 12}", "spec.size: Invalid value: 13: less than ten", false),
        ("{size: 12}", "spec.size: Invalid value: \"integer\": less than nine", false),
        ("{size: 12}", "spec.weight: Invalid value: \"integer\": less than ten", false),
        ("{size: 3}", "spec: Invalid value: \"object\": not three", true),
        ("{size: 3}", "spec: Invalid value: not three", true),
        ("{ports: [{name: a}, {name: a}]}", "Duplicate value: map[string]interface {}{\"name\":\"a\"}", true),
        ("{ports: [{name: a}, {name: a}]}", "Duplicate value: {\"name\":\"a\"}", true),
        ("{ports: [{name: a}, {name: a}]}", "Duplicate value: {\"name\":\"b\"}", false),
        (
            "{weight: 1.5}",
            "Invalid value: \"float64\": spec.weight in body must be of type int32: \"float64\"",
            true,
        ),
        (
            "{weight: 1.5}",
            "Invalid value: \"number\": spec.weight in body must be of type integer: \"number\"",
            true,
        ),
        ("{weight: 1.5}", "spec.weight in body must be of type integer", true),
        ("{weight: 1.5}", "spec.weight in body must be of type string", false),
        (
            "{tags: [a, a], size: 12}",
            "[spec.tags[1]: Duplicate value: \"a\", spec.size: Invalid value: \"integer\": less",
            true,
        ),
    ] {
        let result = create(spec, &format!("expectedError: '{text}'"));
        assert_eq!((result.outcome, result.passed()), (Outcome::Deny, agrees), "{text}: {}", result.message);
    }
}

#[test]
fn verdicts_and_stored_objects_count() {
    let stored = widget("spec: {size: 1}");
    assert!(create("{}", &format!("expected: {stored}")).passed());
    assert!(!create("{}", &format!("expected: {}", widget("spec: {}"))).passed());
    let refused = create("{size: 12}", &format!("expected: {stored}"));
    assert_eq!((refused.outcome, refused.mismatches[0].what), (Outcome::Deny, "outcome"));
    let accepted = create("{}", "expectedError: less");
    assert_eq!((accepted.outcome, accepted.mismatches[0].what), (Outcome::Allow, "outcome"));
}

#[test]
fn an_update_that_cannot_be_prepared_is_an_error() {
    let (initial, updated) = (widget("spec: {size: 12}"), widget("spec: {size: 1}"));
    let tests = format!("  onUpdate: [{{name: a, initial: {initial}, updated: {updated}}}]");
    assert_eq!(result(&tests).outcome, Outcome::Error);
    let patch = "initialCRDPatches: [{op: remove, path: \
                 /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/x-kubernetes-validations}]";
    let tests = format!("  onUpdate: [{{name: a, {patch}, initial: {initial}, updated: {updated}}}]");
    let patched = result(&tests);
    assert_eq!((patched.outcome, patched.passed()), (Outcome::Allow, true), "{patched:?}");
}

#[test]
fn a_status_is_written_by_its_own_request() {
    let (initial, updated) = (widget("spec: {}"), widget("spec: {}, status: {phase: Asleep}"));
    let tests = format!(
        "  onUpdate: [{{name: a, initial: {initial}, updated: {updated}, expectedStatusError: phase}}]"
    );
    assert!(result(&tests).passed());
    let tests =
        format!("  onUpdate: [{{name: a, initial: {initial}, updated: {updated}, expectedError: phase}}]");
    assert!(!result(&tests).passed(), "the main request does not see the status");
}

#[test]
fn an_update_is_one_of_the_stored_object() {
    let crd = CRD.replace(
        "x-kubernetes-validations: [{rule: 'self.size != 3'",
        "x-kubernetes-validations: [{rule: 'true'",
    );
    let crd = crd.replace(
        "        type: object\n        properties:\n          spec:",
        "        type: object\n        x-kubernetes-validations: [{rule: self.metadata.name == 'cluster'}]\n        \
         properties:\n          spec:",
    );
    let (initial, named) =
        (widget("metadata: {name: cluster}, spec: {}"), widget("metadata: {name: other}, spec: {}"));
    for updated in [widget("spec: {size: 2}"), named] {
        let suite = suite(&format!("  onUpdate: [{{name: a, initial: {initial}, updated: {updated}}}]"));
        let variant = Variant::compile("crd.yaml", Arc::new(yaml(&crd)[0].clone()), "v1").unwrap();
        let result = run(&suite.cases[0], &[&variant], None);
        assert_eq!(result.outcome, Outcome::Allow, "{updated}: {}", result.message);
    }
}

#[test]
fn gates_choose_definitions() {
    let definition = |set: &str| {
        let annotations = if set.is_empty() {
            "{}".to_owned()
        } else {
            format!(
                "{{release.openshift.io/feature-set: '{set}', include.release.openshift.io/self: 'true'}}"
            )
        };
        yaml(&format!("kind: CustomResourceDefinition\nmetadata: {{annotations: {annotations}}}"))[0].clone()
    };
    let mut known = FeatureGates::default();
    for (set, gates) in [("Default", "[]"), ("TechPreview", "[{name: A}]")] {
        let manifest = format!(
            "kind: FeatureGate\nmetadata: {{annotations: {{release.openshift.io/feature-set: {set}, \
             include.release.openshift.io/self: 'true'}}}}\nstatus: {{featureGates: [{{enabled: {gates}}}]}}"
        );
        assert!(known.add(&yaml(&manifest)[0]));
    }
    let unknown = FeatureGates::default();
    for (gates, set, gates_known, covered) in [
        ("[]", "Default", false, Some(true)),
        ("[A]", "CustomNoUpgrade", false, Some(true)),
        ("[A]", "Default", false, Some(false)),
        ("[A]", "", false, Some(true)),
        ("[-A]", "Default", false, Some(true)),
        ("[-A]", "CustomNoUpgrade", false, Some(false)),
        ("[A, -B]", "TechPreview", false, None),
        ("[A, -B]", "TechPreview", true, Some(true)),
        ("[A]", "TechPreview", true, Some(true)),
        ("[A]", "Default", true, Some(false)),
        ("[-A]", "TechPreview", true, Some(false)),
    ] {
        let mut suite = suite(&format!("  onCreate: [{{name: a, initial: {}}}]", widget("spec: {}")));
        suite.feature_gates = gates
            .trim_matches(['[', ']'])
            .split(", ")
            .filter(|gate| !gate.is_empty())
            .map(str::to_owned)
            .collect();
        let found = suite.covers(&definition(set), if gates_known { &known } else { &unknown });
        assert_eq!(found.ok(), covered, "{gates} {set}");
    }
}
