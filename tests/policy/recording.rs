//! What a recording tells of the expressions that a decision or a validation evaluated.

use admit_policy::crd::{CompiledCrd, ValidateOptions};
use admit_policy::{EvalOptions, Keep, KnownKinds, ObjectChange, Origin, Recorded, Recording};
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::support::{request, set, widgets_of, yaml};

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]
  matchConditions: [{name: named, expression: ' has(object.metadata.name)'}]
  variables: [{name: short, expression: size(object.metadata.name) < 4}]
  validations:
  - {expression: variables.short || object.metadata.name.startsWith('x'), messageExpression: \"'not ' + object.kind\"}
  - {expression: \"true\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny], matchResources: {}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
";

/// `path = outcome` of every trace.
fn traces(recorded: &IndexMap<admit_policy::ExpressionId, Recorded>) -> Vec<String> {
    let of = |(id, recorded): (&admit_policy::ExpressionId, &Recorded)| {
        let traces = recorded.traces.iter().map(|trace| {
            let outcome = trace.outcome.clone().unwrap_or_else(|error| error.to_string());
            format!("{}{}{} = {outcome}", id.path, if trace.at.is_empty() { "" } else { " at " }, trace.at)
        });
        traces.collect::<Vec<_>>()
    };
    recorded.iter().flat_map(of).collect()
}

#[test]
fn a_policy_tells_all_that_its_expressions_did() {
    let set = set(POLICY);
    let recording = Recording::new(Keep::TRACES);
    for name in ["long-name", "ab"] {
        let plain = set.decide(&request(name, &json!({})), set.documents());
        let decision = set.decide_recorded(&request(name, &json!({})), set.documents(), |_| true, &recording);
        assert_eq!(plain.denial, decision.denial, "{name}");
        assert_eq!(decision.allowed(), name == "ab");
    }
    let recorded = recording.finish();
    assert_eq!(
        traces(&recorded),
        [
            "spec.matchConditions[0].expression = true",
            "spec.matchConditions[0].expression = true",
            "spec.variables[0].expression = false",
            "spec.variables[0].expression = true",
            "spec.validations[0].expression = false",
            "spec.validations[0].expression = true",
            "spec.validations[1].expression = true",
            "spec.validations[1].expression = true",
            "spec.validations[0].messageExpression = \"not ConfigMap\"",
            "spec.validations[0].messageExpression = \"not ConfigMap\"",
        ]
    );
    let (id, first) = recorded.get_index(2).expect("the validation was evaluated");
    assert_eq!(id.origin, Origin::Policy { name: "p".to_owned() });
    let parts = first.traces[0].parts.iter().map(|part| (part.span.of(&first.text), part.outcome.clone()));
    let expected = [
        ("variables", "{…}"),
        ("variables.short", "false"),
        (
            "object",
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"long-name\", \"namespace\": \"team\"}}",
        ),
        ("object.metadata", "{\"name\": \"long-name\", \"namespace\": \"team\"}"),
        ("object.metadata.name", "\"long-name\""),
        ("'x'", "\"x\""),
        ("object.metadata.name.startsWith('x')", "false"),
        ("variables.short || object.metadata.name.startsWith('x')", "false"),
    ];
    assert_eq!(parts.collect::<Vec<_>>(), expected.map(|(text, value)| (text, Ok(value.to_owned()))));
    let missed: Vec<_> = first
        .coverage
        .branches()
        .filter(|(_, hit)| !hit)
        .map(|(branch, _)| (branch.span.of(&first.text), branch.when))
        .collect();
    assert_eq!(missed, [("object.metadata.name.startsWith('x')", Some(true))]);

    let (policy, _) = set.policies().next().expect("the policy is there");
    let all: Vec<_> = policy.expressions().into_iter().map(|expression| expression.id).collect();
    assert!(recorded.keys().all(|id| all.contains(id)) && all.len() == recorded.len(), "{all:?}");
}

const PROPERTIES: &str = "          spec:
            type: object
            properties:
              ports:
                type: array
                maxItems: 5
                items:
                  type: integer
                  x-kubernetes-validations:
                  - {rule: self > 0 && self < 100, messageExpression: \"'port ' + (self > 100 ? 'big' : 'small')\"}
            x-kubernetes-validations:
            - {rule: has(self.ports) && self.ports.size() > 0}
            - {rule: self == oldSelf}
";

#[test]
fn the_rules_of_a_definition_are_told_by_their_place_in_the_schema() {
    let crd = CompiledCrd::compile(&yaml(&widgets_of(PROPERTIES))[0]).expect("the definition is right");
    let version = &crd.versions()[0];
    let recording = Recording::new(Keep::TRACES);
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"},
        "spec": {"ports": [80, 443]}
    });
    let options = ValidateOptions { eval: Some(&recording).into(), ..ValidateOptions::default() };
    let found = version.validate(&object, None, &options);
    assert_eq!(found, version.validate(&object, None, &ValidateOptions::default()));
    assert_eq!(found.errors.len(), 1);
    let recorded = recording.finish();
    let schema = "spec.versions[0].schema.openAPIV3Schema.properties[spec]";
    let item = format!("{schema}.properties[ports].items.x-kubernetes-validations[0]");
    assert_eq!(
        traces(&recorded),
        [
            format!("{schema}.x-kubernetes-validations[0].rule at spec = true"),
            format!("{item}.rule at spec.ports[0] = true"),
            format!("{item}.rule at spec.ports[1] = false"),
            format!("{item}.messageExpression at spec.ports[1] = \"port big\""),
        ]
    );
    let paths: Vec<_> = version.expressions().into_iter().map(|expression| expression.id.path).collect();
    assert_eq!(
        paths,
        [
            format!("{item}.messageExpression"),
            format!("{item}.rule"),
            format!("{schema}.x-kubernetes-validations[0].rule"),
            format!("{schema}.x-kubernetes-validations[1].rule"),
        ],
        "the transition rule is listed although nothing evaluated it"
    );
}

#[test]
fn coverage_alone_keeps_no_values() {
    let set = set(POLICY);
    let recording = Recording::new(Keep::COVERAGE);
    set.decide_recorded(&request("ab", &json!({})), set.documents(), |_| true, &recording);
    let recorded = recording.finish();
    assert!(recorded.values().all(|recorded| recorded.traces.is_empty() && recorded.evaluations == 1));
    assert!(recorded.values().any(|recorded| recorded.coverage.hits() > 0));
}

const MUTATING: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: p}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/data', value: {'of': object.metadata.name}}]\"}
  - patchType: JSONPatch
    jsonPatch: {expression: \"[JSONPatch{op: 'test', path: '/data/of', value: 'ab'}]\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p}
---
";

/// A policy of the other kind may have the same name: neither's expressions count as the other's.
#[test]
fn a_mutation_tells_what_it_changed() {
    let set = set(&format!("{MUTATING}{POLICY}"));
    let recording = Recording::new(Keep::TRACES);
    let kinds = KnownKinds { documents: set.documents(), builtins: None };
    let request = request("ab", &json!({}));
    let eval = EvalOptions::from(Some(&recording));
    let mutated = set.mutate_fully(&request, (set.documents(), &kinds), eval, |_| true);
    set.decide_recorded(&request, set.documents(), |_| true, &recording);
    let recorded = recording.finish();
    let of = |origin: &Origin| recorded.iter().filter(|(id, _)| id.origin == *origin).collect::<Vec<_>>();
    assert_eq!(of(&Origin::Policy { name: "p".to_owned() }).len(), 5);
    let changes: Vec<_> = of(&Origin::Mutating { name: "p".to_owned() })
        .into_iter()
        .map(|(id, recorded)| (id.path.as_str(), recorded.traces[0].change.clone().unwrap()))
        .collect();
    let sent = request.object.as_ref().unwrap().value().into_owned();
    let made = mutated.object.unwrap();
    assert_eq!(made["data"], json!({"of": "ab"}));
    let change =
        |before: &Value, after: &Value| ObjectChange { before: before.clone(), after: after.clone() };
    assert_eq!(
        changes,
        [
            ("spec.mutations[0].jsonPatch.expression", change(&sent, &made)),
            ("spec.mutations[1].jsonPatch.expression", change(&made, &made)),
        ]
    );
}
