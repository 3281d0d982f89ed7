//! Pictures of what rules allow: of the shipped policies, and of rules whose pictures are known by hand.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use admit_analysis::states::{
    Allowance, Diagram, Difference, Inquiry, Limit, Picture, PictureError, Reach, Subject, compare, mermaid,
};
use admit_policy::manifest::{self, Document};
use admit_policy::{GroupVersionKind, PolicySet};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(files: &[&str]) -> Vec<Document> {
    let text = |file: &&str| fs::read_to_string(root().join(file)).expect(file);
    files.iter().flat_map(|file| manifest::read(file, &text(file)).expect("manifests")).collect()
}

/// The policies of a folder, without suites.
fn shipped(folder: &str, crd: &str) -> Vec<Document> {
    let mut files: Vec<String> = fs::read_dir(root().join("policies").join(folder))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| {
            name.ends_with(".yaml") && !name.ends_with(".suite.yaml") && name != "kustomization.yaml"
        })
        .map(|name| format!("policies/{folder}/{name}"))
        .collect();
    files.sort();
    files.push(format!("deploy/crds/{crd}.yaml"));
    read(&files.iter().map(String::as_str).collect::<Vec<_>>())
}

fn with<T>(documents: &[Document], kind: &GroupVersionKind, ask: impl FnOnce(&Inquiry<'_>) -> T) -> T {
    let set = PolicySet::load(documents).expect("they compile");
    ask(&Inquiry { set: &set, documents, kind, given: &[], users: &[], only: None, over: &|| false })
}

fn picture(documents: &[Document], kind: &GroupVersionKind, field: &str) -> Picture {
    let field = Subject::Field(field.parse().expect("a path"));
    with(documents, kind, |inquiry| inquiry.picture(&field)).expect("a picture")
}

fn allowed(picture: &Picture) -> Vec<String> {
    let told = |from: Option<&str>, to: &str| format!("{} {to}", from.unwrap_or("[*]"));
    picture.allowed().map(|transition| told(transition.from.as_deref(), &transition.to)).collect()
}

fn verdict<'p>(picture: &'p Picture, from: Option<&str>, to: &str) -> &'p Allowance {
    let is_it = |(own, other): (Option<&str>, &str)| own == from && other == to;
    let mut transitions = picture.transitions.iter();
    &transitions.find(|own| is_it((own.from.as_deref(), &own.to))).expect("a transition").verdict
}

#[test]
fn the_states_of_a_run_are_those_of_its_document() {
    let kind = GroupVersionKind::new("insights.openshift.io", "v1alpha1", "DataGather");
    let documents = shipped("datagather", "datagathers");
    let fields = with(&documents, &kind, |inquiry| inquiry.fields());
    assert!(fields.iter().any(|field| field.to_string() == "status.dataGatherState"), "{fields:?}");
    let picture = picture(&documents, &kind, "status.dataGatherState");
    let mut found = allowed(&picture);
    found.sort();
    assert_eq!(
        found,
        [
            "Pending Failed",
            "Pending Running",
            "Running Completed",
            "Running Failed",
            "[*] absent",
            "absent Failed",
            "absent Pending"
        ]
    );
    // Each of these rules looks at the state alone: nothing depends on what was tried.
    assert!(picture.is_decided(), "{:#?}", picture.undecided().collect::<Vec<_>>());
    let ends: Vec<(&str, bool)> = picture.dead_ends().collect();
    assert_eq!(ends, [("Completed", true), ("Failed", true)]);
    let Allowance::Forbidden { rules } = verdict(&picture, Some("Pending"), "Completed") else { panic!() };
    assert_eq!(rules[0].message, "a Pending run cannot become Completed directly");
    let Allowance::Allowed { conditions, example, .. } = verdict(&picture, Some("Pending"), "Running") else {
        panic!()
    };
    assert!(conditions.iter().any(|rule| rule.origin == "datagather-start-time"), "{conditions:?}");
    assert!(example.new.pointer("/status/startTime").is_some_and(Value::is_string), "{example:?}");
}

/// The state is a free text, which rules bind to another field: only together are the two decided.
#[test]
fn a_final_state_is_final_where_another_field_says_so() {
    let kind = GroupVersionKind::new("operator.openshift.io", "v1alpha1", "MustGather");
    let picture = picture(&shipped("mustgather", "mustgathers"), &kind, "status.status");
    assert!(picture.is_decided(), "{}{:#?}", mermaid(&picture), picture.undecided().collect::<Vec<_>>());
    let ends: Vec<(&str, bool)> = picture.dead_ends().collect();
    assert_eq!(ends, [("Completed", true), ("Failed", true)]);
    let other = picture.states.iter().find(|state| state.name == "other").expect("other texts");
    assert_eq!(other.reach, Reach::Unreachable);
}

/// A policy in the form of the safe-upgrades policy of the Gateway API. As first released it lets nothing of the experimental
/// channel be made or changed, wherever it comes from (gateway-api #4557, #4603).
fn channels(expression: &str) -> Picture {
    let size = "spec: {type: object, properties: {size: {type: integer}}}";
    let bundles = testing::definition_text("bundles.example.com", "Bundle", "Cluster", size);
    let text = format!(
        "{bundles}---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: channels}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [bundles]}}
  variables:
  - name: new
    expression: >-
      has(object.metadata.annotations) && 'example.com/channel' in object.metadata.annotations
      ? object.metadata.annotations['example.com/channel'] : ''
  - name: old
    expression: >-
      oldObject != null && has(oldObject.metadata.annotations) && 'example.com/channel' in oldObject.metadata.annotations
      ? oldObject.metadata.annotations['example.com/channel'] : ''
  validations:
  - expression: \"variables.new in ['standard', 'experimental']\"
    message: there are two channels
  - expression: \"{expression}\"
    message: experimental over standard is not wanted
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: channels}}
spec: {{policyName: channels, validationActions: [Deny]}}
"
    );
    let documents = manifest::read("channels.yaml", &text).expect("manifests");
    let kind = GroupVersionKind::new("example.com", "v1", "Bundle");
    picture(&documents, &kind, "metadata.annotations[example.com/channel]")
}

#[test]
fn a_channel_that_cannot_be_entered_or_kept_is_seen() {
    let wanted = Diagram::read(
        "stateDiagram-v2
    [*] --> standard
    [*] --> experimental
    experimental --> experimental
    experimental --> standard
",
    )
    .expect("a diagram");
    let first = channels("variables.new == 'standard'");
    let differences: Vec<String> = compare(&first, &wanted).iter().map(ToString::to_string).collect();
    let because = "in the diagram, and forbidden: experimental over standard is not wanted";
    let state = first.states.iter().find(|state| state.name == "experimental").expect("a state");
    assert_eq!(state.reach, Reach::Unreachable);
    assert!(differences.contains(&format!("[*] -> experimental: {because}")), "{differences:#?}");
    let kept = channels("variables.new == 'standard' || oldObject == null");
    let differences: Vec<String> = compare(&kept, &wanted).iter().map(ToString::to_string).collect();
    assert_eq!(differences, [format!("experimental -> experimental: {because}")]);
    let fixed =
        channels("variables.new == 'standard' || oldObject == null || variables.old == 'experimental'");
    assert_eq!(compare(&fixed, &wanted), []);
    assert!(fixed.is_decided(), "{}", mermaid(&fixed));
}

/// A definition with these rules on its spec.
fn thing(schema: &str, rule: &str) -> Vec<Document> {
    let text = format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: things, kind: Thing}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema:
      openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, x-kubernetes-validations: [{rule}]}}, status: {schema}}}}}
"
    );
    manifest::read("things.yaml", &text).expect("a definition")
}

fn pictured(schema: &str, subject: &Subject) -> Result<Picture, PictureError> {
    let kind = GroupVersionKind::new("example.com", "v1", "Thing");
    with(&thing(schema, ""), &kind, |inquiry| inquiry.picture(subject))
}

fn phases(schema: &str) -> Result<Picture, PictureError> {
    pictured(schema, &Subject::Field("status.phase".parse().expect("a path")))
}

const PHASE: &str = "phase: {type: string, enum: [A, B], x-kubernetes-validations: [{rule: self == 'B' || oldSelf == 'A', message: not back}]}";

#[test]
fn a_rule_over_other_fields_is_a_condition_and_no_verdict() {
    let rule = "{rule: \"!has(self.phase) || self.phase != 'B' || self.count > 2\", message: too few}";
    let schema = format!(
        "{{type: object, properties: {{count: {{type: integer, default: 0}}, {PHASE}}}, x-kubernetes-validations: [{rule}]}}"
    );
    let picture = phases(&schema).expect("a picture");
    let Allowance::Allowed { conditions, example, .. } = verdict(&picture, Some("A"), "B") else { panic!() };
    assert_eq!(conditions.iter().map(|rule| rule.message.as_str()).collect::<Vec<_>>(), ["too few"]);
    assert_eq!(example.new["status"]["count"], 3);
    let Allowance::Forbidden { rules } = verdict(&picture, Some("B"), "A") else { panic!() };
    assert_eq!(rules[0].message, "not back");
}

/// Without a rule that looks at the state alone, that nothing was found is no proof.
#[test]
fn what_was_not_found_is_undecided() {
    let rule = "{rule: \"!has(self.phase) || self.phase != 'B' || self.name.matches('^x{9}y$')\", message: no such name}";
    let schema = format!(
        "{{type: object, properties: {{name: {{type: string, maxLength: 99, default: a}}, phase: {{type: string, enum: [A, B]}}}}, x-kubernetes-validations: [{rule}]}}"
    );
    let picture = phases(&schema).expect("a picture");
    let Allowance::Undecided { tried, rules } = verdict(&picture, Some("A"), "B") else { panic!() };
    assert!(*tried > 0 && rules[0].message == "no such name", "{rules:?}");
    assert!(!picture.is_decided());
    assert!(picture.states.iter().any(|state| state.name == "B" && state.reach == Reach::Undecided));
    let wanted = Diagram::of([(None, "absent".to_owned()), (Some("A".to_owned()), "B".to_owned())]);
    let differences = compare(&picture, &wanted);
    assert!(differences.iter().any(Difference::is_undecided), "{differences:?}");
}

#[test]
fn what_cannot_be_drawn_is_told() {
    assert!(matches!(phases("{type: object}"), Err(PictureError::NoField { .. })));
    let free = "{type: object, properties: {phase: {type: string}}}";
    assert!(matches!(phases(free), Err(PictureError::Unbounded { .. })));
}

/// Time that is over leaves everything undecided that was not found by then.
#[test]
fn nothing_is_concluded_when_the_time_is_over() {
    let kind = GroupVersionKind::new("insights.openshift.io", "v1alpha1", "DataGather");
    let documents = shipped("datagather", "datagathers");
    let set = PolicySet::load(&documents).expect("they compile");
    let asked = Cell::new(0_u32);
    let over = || {
        asked.set(asked.get() + 1);
        asked.get() > 40
    };
    let inquiry = Inquiry {
        set: &set,
        documents: &documents,
        kind: &kind,
        given: &[],
        users: &[],
        only: None,
        over: &over,
    };
    let picture = inquiry
        .picture(&Subject::Field("status.dataGatherState".parse().expect("a path")))
        .expect("a picture");
    assert!(picture.interrupted && !picture.is_decided());
}

#[test]
fn what_is_drawn_is_read_again() {
    let schema = format!("{{type: object, properties: {{{PHASE}}}}}");
    let picture = phases(&schema).expect("a picture");
    let drawn = mermaid(&picture);
    assert_eq!(compare(&picture, &Diagram::read(&drawn).expect(&drawn)), [], "{drawn}");
    let other = Diagram::read("```mermaid\nstateDiagram-v2\n[*] --> absent\nabsent --> C\nA --> [*]\n```\n")
        .expect("a diagram");
    let differences: Vec<String> = compare(&picture, &other).iter().map(ToString::to_string).collect();
    assert_eq!(differences[0], "C: in the diagram, and no value of the field");
    assert!(differences.contains(&"A -> B: allowed, and not in the diagram".to_owned()), "{differences:?}");
    assert!(
        differences.last().is_some_and(|last| last.starts_with("A: the end in the diagram")),
        "{differences:?}"
    );
    assert!(Diagram::read("stateDiagram-v2\nstate A {\n").is_err());
}

/// A rule that goes through a list says of an entry what it says of it alone, whatever else is in the list; what it says of the
/// list as a whole, other entries may decide.
fn listed(rules: &str, field: &str) -> Picture {
    let condition = "{type: object, required: [type, status], properties: {type: {type: string, maxLength: 20}, status: {type: string, enum: [A, B]}}}";
    let list = format!(
        "conditions: {{type: array, maxItems: 5, items: {condition}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type]}}"
    );
    let schema = format!(
        "{{type: object, properties: {{phase: {{type: string, enum: [A, B]}}, {list}}}, x-kubernetes-validations: [{rules}]}}"
    );
    pictured(&schema, &Subject::Field(field.parse().expect("a path"))).expect("a picture")
}

#[test]
fn an_entry_of_a_list_is_decided_by_rules_that_tie_to_it() {
    let kept = "{rule: \"!has(self.conditions) || !has(oldSelf.conditions) || self.conditions.all(n, oldSelf.conditions.filter(o, o.type == n.type).all(o, o.status != 'B' || n.status == 'B'))\", message: B stays}";
    let there = "{rule: \"!has(oldSelf.conditions) || oldSelf.conditions.filter(o, o.type == 'Ready').all(o, has(self.conditions) && self.conditions.exists(n, n.type == o.type))\", message: Ready stays}";
    let picture = listed(&format!("{kept}, {there}"), "status.conditions[type=Ready].status");
    let Allowance::Forbidden { rules } = verdict(&picture, Some("B"), "A") else { panic!("{picture:#?}") };
    assert_eq!(rules.iter().map(|rule| rule.message.as_str()).collect::<Vec<_>>(), ["B stays"]);
    // Without a status, its rules are not asked; the policies of the shipped systems are, and keep what is there.
    assert!(matches!(verdict(&picture, Some("A"), "absent"), Allowance::Allowed { .. }));
    assert!(picture.is_decided(), "{}", mermaid(&picture));
}

#[test]
fn what_another_entry_may_decide_is_not_forbidden() {
    // Refused of each list with one entry, and let through of one with two.
    let rule = "{rule: \"!has(self.phase) || self.phase != 'B' || has(self.conditions) && self.conditions.exists(c, c.type == 'Ready' && c.status == 'A') && self.conditions.exists(c, c.type.matches('^x{9}y$'))\", message: two are missing}";
    let picture = listed(rule, "status.phase");
    assert!(matches!(
        verdict(&picture, Some("A"), "B"),
        Allowance::Undecided { .. } | Allowance::Allowed { .. }
    ));
    let rule = "{rule: \"self.conditions.exists(c, c.status == 'B') || self.conditions.all(c, c.status == 'A')\", message: none is B}";
    let picture = listed(rule, "status.conditions[type=Ready].status");
    assert!(!matches!(verdict(&picture, Some("A"), "B"), Allowance::Forbidden { .. }));
}

/// A state that is read from two fields.
const STATE: &str = "stage=!has(self.status) || !has(self.status.phase) ? 'New' : self.status.phase == 'B' && has(self.status.ready) && self.status.ready ? 'Done' : 'Busy'";
const TWO: &str = "phase: {type: string, enum: [A, B]}, ready: {type: boolean}, hint: {type: string}";

fn staged(rule: &str) -> Picture {
    let schema = format!("{{type: object, properties: {{{TWO}}}, x-kubernetes-validations: [{rule}]}}");
    pictured(&schema, &Subject::state(STATE)).expect("a picture")
}

#[test]
fn a_state_of_several_fields_is_decided_over_their_values() {
    let was = "has(oldSelf.phase) && oldSelf.phase == 'B' && has(oldSelf.ready) && oldSelf.ready";
    let is = "has(self.phase) && self.phase == 'B' && has(self.ready) && self.ready";
    let picture = staged(&format!("{{rule: \"!({was}) || {is}\", message: done is done}}"));
    assert!(picture.is_decided() && picture.limit.is_none(), "{picture:#?}");
    assert_eq!(picture.subject.to_string(), "stage");
    let Allowance::Forbidden { rules } = verdict(&picture, Some("Done"), "Busy") else {
        panic!("{picture:#?}")
    };
    assert_eq!(rules[0].message, "done is done");
    // A rule of the status is not asked where there is none any more.
    assert!(matches!(verdict(&picture, Some("Done"), "New"), Allowance::Allowed { .. }));
    // No rule that looks at these fields looks at anything else.
    assert!(matches!(verdict(&picture, Some("Busy"), "Done"), Allowance::Allowed { always: true, .. }));
    let asks =
        staged("{rule: \"!has(self.ready) || !self.ready || has(self.hint)\", message: a hint is missing}");
    let Allowance::Allowed { always: false, conditions, .. } = verdict(&asks, Some("Busy"), "Done") else {
        panic!("{asks:#?}")
    };
    assert_eq!(conditions[0].message, "a hint is missing");
}

#[test]
fn only_objects_that_are_meant_count() {
    let schema = format!("{{type: object, properties: {{{TWO}}}}}");
    let documents = thing(&schema, "");
    let kind = GroupVersionKind::new("example.com", "v1", "Thing");
    let subject = Subject::state(STATE);
    let only = Some("!has(self.status) || !has(self.status.ready) || !self.status.ready");
    let picture =
        with(&documents, &kind, |inquiry| Inquiry { only, ..*inquiry }.picture(&subject)).expect("a picture");
    let done = picture.states.iter().find(|state| state.name == "Done").map(|state| state.reach);
    assert_eq!(done, Some(Reach::Unreachable), "{picture:#?}");
    let mixed = Subject::state("self.spec == self.status ? 'A' : 'B'");
    let error = with(&documents, &kind, |inquiry| inquiry.picture(&mixed)).expect_err("no picture");
    assert!(matches!(error, PictureError::Mixed { .. }), "{error}");
    for wrong in ["self.status.phase ==", "self.status.nothing == 'A' ? 'A' : 'B'"] {
        assert!(
            with(&documents, &kind, |inquiry| inquiry.picture(&Subject::state(wrong))).is_err(),
            "{wrong}"
        );
    }
}

/// A field that is null is there, and has no value: such fields are more than their values.
#[test]
fn nothing_is_concluded_of_what_may_be_null() {
    let rule = "{rule: \"!has(self.phase) || self.phase != 'B'\", message: no B}";
    let schema = format!(
        "{{type: object, properties: {{phase: {{type: string, nullable: true, enum: [A, B]}}}}, x-kubernetes-validations: [{rule}]}}"
    );
    let picture = phases(&schema).expect("a picture");
    assert_eq!(picture.limit, Some(Limit::Reads));
    assert!(!matches!(verdict(&picture, Some("A"), "B"), Allowance::Forbidden { .. }));
}

/// What is too much is told by name, in no more time than what is not.
#[test]
fn states_and_combinations_are_bounded() {
    let values: Vec<String> = (0..10_000).map(|n| format!("V{n}")).collect();
    let many =
        format!("{{type: object, properties: {{phase: {{type: string, enum: [{}]}}}}}}", values.join(", "));
    let error = phases(&many).expect_err("too many");
    assert_eq!(error, PictureError::TooMany { field: "status.phase".to_owned(), count: 10_001, most: 64 });
    let flags: Vec<String> = (0..100).map(|n| format!("f{n}: {{type: boolean}}")).collect();
    let all: Vec<String> = (0..100).map(|n| format!("has(self.f{n}) && self.f{n}")).collect();
    let rule = format!(
        "{{rule: \"!has(self.phase) || self.phase != 'B' || {}\", message: not all}}",
        all.join(" && ")
    );
    let schema = format!(
        "{{type: object, properties: {{phase: {{type: string, enum: [A, B]}}, {}}}, x-kubernetes-validations: [{rule}]}}",
        flags.join(", ")
    );
    let asked = Cell::new(0_u32);
    let over = || {
        asked.set(asked.get() + 1);
        asked.get() > 20_000
    };
    let documents = thing(&schema, "");
    let kind = GroupVersionKind::new("example.com", "v1", "Thing");
    let ask = |subject: &Subject| {
        with(&documents, &kind, |inquiry| Inquiry { over: &over, ..*inquiry }.picture(subject))
    };
    let picture = ask(&Subject::Field("status.phase".parse().expect("a path"))).expect("a picture");
    assert!(!matches!(verdict(&picture, Some("A"), "B"), Allowance::Forbidden { .. }));
    let state: Vec<String> = (0..100).map(|n| format!("self.status.f{n}")).collect();
    let picture = ask(&Subject::state(&format!("{} ? 'On' : 'Off'", state.join(" && ")))).expect("a picture");
    assert!(matches!(picture.limit, Some(Limit::Combinations { .. })), "{:?}", picture.limit);
    assert!(!picture.is_decided());
}

#[test]
fn reasons_of_a_component_are_decided_in_their_list() {
    let kind =
        GroupVersionKind::new("observability.open-cluster-management.io", "v1beta1", "ObservabilityAddon");
    let documents = shipped("observability", "observabilityaddons");
    let field =
        Subject::Field("status.conditions[type=UwlMetricsCollectorStatus].reason".parse().expect("a path"));
    let ask = |only| {
        with(&documents, &kind, |inquiry| Inquiry { only, ..*inquiry }.picture(&field).expect("a picture"))
    };
    let spoke = "!(has(self.metadata.finalizers) && 'observability.open-cluster-management.io/addon-cleanup' in self.metadata.finalizers)";
    let picture = ask(Some(spoke));
    assert!(picture.is_decided(), "{}{:#?}", mermaid(&picture), picture.undecided().collect::<Vec<_>>());
    let Allowance::Forbidden { rules } = verdict(&picture, Some("UpdateFailure"), "ForwardSuccessful") else {
        panic!()
    };
    assert_eq!(rules[0].message, "reason transition not allowed by the table");
    let Allowance::Allowed { user, .. } = verdict(&picture, Some("UpdateFailure"), "UpdateSuccesful") else {
        panic!()
    };
    assert!(user.as_ref().is_some_and(|user| user.ends_with("admit-observability")), "{user:?}");
}
