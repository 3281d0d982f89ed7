//! What is answered about a place: exact, also in blocks, folded, with escapes, and beside text that is not ASCII.

use std::sync::LazyLock;

use admit_language::{Encoding, ItemKind, Place, RenameError, Workspace};
use admit_policy::{Documents, LoadOptions};

use crate::support::{behind, shown};

pub(crate) static DEFINITION: LazyLock<String> = LazyLock::new(|| {
    testing::shops(
        r#"spec:
  type: object
  properties:
    size: {type: integer, minimum: 1, description: How large it is.}
    phase: {type: string, enum: [Open, Closed]}
    doors:
      type: array
      maxItems: 9
      items:
        type: object
        properties:
          name: {type: string, maxLength: 63, description: 'What a “door” is called.'}
  x-kubernetes-validations:
  - rule: >-
      self.doors.all(d, d.name != 'tür') ||
      self.size > 1
  - rule: "self.doors.all(d, d.name != '\u00e4') &&\
      self.phase == 'Open'""#,
    )
});

pub(crate) const POLICY: &str = r#"apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: shops}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [shops]}]
  variables:
  - name: doors
    expression: object.spec.doors
  validations:
  - expression: |-
      // 💡 variables.doors
      variables.doors.size() > 0 &&
        variables.doors.all(d, d.name != params.data.name)
    messageExpression: "'ä' + string(variables.doors.size())"
  - expression: variables.doors.
"#;

pub(crate) fn workspace(encoding: Encoding) -> Workspace {
    let mut workspace = Workspace::new(Box::new(Documents::default()), LoadOptions::default(), encoding);
    workspace.open("shop.yaml", DEFINITION.clone());
    workspace.open("policy.yaml", POLICY.to_owned());
    workspace
}

fn labels(workspace: &Workspace, file: &str, place: Place, kind: ItemKind) -> Vec<String> {
    let (_, items) = workspace.complete(file, place).unwrap_or_else(|| panic!("something at {place:?}"));
    items.into_iter().filter(|item| item.kind == kind).map(|item| item.label).collect()
}

#[test]
fn mistakes_are_those_of_lint_at_their_tokens() {
    let mut workspace = workspace(Encoding::Utf16);
    let text = DEFINITION.replace("self.size > 1", "self.größe > 1").replace("self.phase ==", "self.faze ==");
    workspace.open("shop.yaml", text.clone());
    let found = workspace.check("shop.yaml");
    let told: Vec<_> = found.iter().map(|mistake| (mistake.code, shown(&text, &mistake.range))).collect();
    // cel-go does not know letters beyond ASCII; what has no position of its own is told at its key.
    assert_eq!(told, [("refused", "öße".to_owned()), ("refused", ".".to_owned())], "{found:#?}");
    assert_eq!(workspace.check("nothing.yaml"), []);
}

#[test]
fn a_text_that_is_no_yaml_says_so() {
    let mut workspace = workspace(Encoding::Utf16);
    workspace.open("shop.yaml", DEFINITION.replace("enum: [Open, Closed]", "enum: [Open, Closed"));
    let found = workspace.check("shop.yaml");
    assert_eq!(found.iter().map(|mistake| mistake.code).collect::<Vec<_>>(), ["not-yaml"]);
}

#[test]
fn suites_of_the_wrong_shape_are_told_where_they_are_wrong() {
    let mut workspace = workspace(Encoding::Utf16);
    let suite =
        "apiVersion: admit/v1\nkind: Suite\ncases:\n- name: a\n  object: {}\n  expect: {outcome: perhaps}\n";
    workspace.open("a.suite.yaml", suite.to_owned());
    let found = workspace.check("a.suite.yaml");
    let suites: Vec<_> = found.iter().filter(|mistake| mistake.code == "suite").collect();
    assert_eq!(suites.len(), 1, "{found:#?}");
    assert_eq!(shown(suite, &suites[0].range), "outcome");
}

#[test]
fn hover_tells_types_documentation_bounds_and_cost() {
    let mut workspace = workspace(Encoding::Utf16);
    workspace.check("shop.yaml");
    let size = workspace.hover("shop.yaml", behind(&DEFINITION, "self.siz")).expect("a field");
    assert_eq!(shown(&DEFINITION, &size.range), "size");
    assert!(
        size.text.starts_with("```cel\nself.size: int\n```\nHow large it is.\n- minimum: `1`"),
        "{}",
        size.text
    );
    assert!(size.text.contains("Estimated cost: "), "{}", size.text);
    let door = workspace.hover("shop.yaml", behind(&DEFINITION, "(d, d.na")).expect("a field of an element");
    assert!(
        door.text.contains("d.name: string") && door.text.contains("What a “door” is called."),
        "{}",
        door.text
    );
    assert!(door.text.contains("maxLength: `63`"), "{}", door.text);
    let all = workspace.hover("policy.yaml", behind(POLICY, "doors.al")).expect("a macro");
    assert!(all.text.contains("list.all(x, test)") && all.text.contains("1.29 or before"), "{}", all.text);
    let size = workspace.hover("policy.yaml", behind(POLICY, "variables.doors.siz")).expect("a function");
    assert!(size.text.contains(".size() -> int"), "{}", size.text);
    assert_eq!(workspace.hover("policy.yaml", behind(POLICY, "kind: Valid")), None, "no expression");
}

#[test]
fn a_function_says_its_first_release() {
    let mut workspace = workspace(Encoding::Utf16);
    let text = POLICY.replace("variables.doors.\n", "semver('1.2.3').major() == 1\n");
    workspace.open("policy.yaml", text.clone());
    let told = workspace.hover("policy.yaml", behind(&text, "semv")).expect("a function");
    assert!(told.text.contains("Since Kubernetes 1.34."), "{}", told.text);
}

#[test]
fn completion_knows_fields_names_functions_and_values() {
    let mut workspace = workspace(Encoding::Utf16);
    // Behind the dot of an expression that does not parse.
    let at = behind(POLICY, "- expression: variables.doors.");
    assert_eq!(labels(&workspace, "policy.yaml", at, ItemKind::Field), Vec::<String>::new());
    assert!(labels(&workspace, "policy.yaml", at, ItemKind::Macro).contains(&"exists_one".to_owned()));
    let text = POLICY.replace("variables.doors.\n", "object.spec.doors.all(d, d.\n");
    workspace.open("policy.yaml", text.clone());
    assert_eq!(
        labels(&workspace, "policy.yaml", behind(&text, "object.spec.doors.all(d, d."), ItemKind::Field),
        ["name"]
    );
    let text = POLICY.replace("variables.doors.\n", "variables.d\n");
    workspace.open("policy.yaml", text.clone());
    assert_eq!(
        labels(&workspace, "policy.yaml", behind(&text, "- expression: variables.d"), ItemKind::Field),
        ["doors"]
    );
    let text = POLICY.replace("variables.doors.\n", "object.spec.doors.all(door, do\n");
    workspace.open("policy.yaml", text.clone());
    let names = labels(&workspace, "policy.yaml", behind(&text, "door, do"), ItemKind::Variable);
    for name in
        ["door", "object", "params", "request", "variables", "authorizer", "namespaceObject", "oldObject"]
    {
        assert!(names.contains(&name.to_owned()), "{name} of {names:?}");
    }
    let text = DEFINITION.replace("self.size > 1", "self.phase in ['Open', '");
    workspace.open("shop.yaml", text.clone());
    let at = behind(&text, "in ['Open', '");
    assert_eq!(labels(&workspace, "shop.yaml", at, ItemKind::Value), ["Closed", "Open"]);
    let text = DEFINITION.replace("self.size > 1", "self.spe");
    workspace.open("shop.yaml", text.clone());
    let (range, items) = workspace.complete("shop.yaml", behind(&text, "self.spe")).expect("fields");
    assert_eq!(shown(&text, &range), "spe");
    let fields: Vec<_> = items.iter().filter(|item| item.kind == ItemKind::Field).collect();
    assert_eq!(fields.iter().map(|item| &*item.label).collect::<Vec<_>>(), ["doors", "phase", "size"]);
    assert_eq!((&*fields[2].detail, &*fields[2].documentation), ("int", "How large it is."));
}

#[test]
fn the_last_good_structure_serves_while_yaml_is_broken() {
    let mut workspace = workspace(Encoding::Utf16);
    // A colon and a space end a plain scalar: no YAML, until the text gets quotes.
    let text = POLICY.replace("variables.doors.\n", "has(object.spec) ? object.spec.size : object.spec.\n");
    workspace.open("policy.yaml", text.clone());
    assert_eq!(workspace.check("policy.yaml")[0].code, "not-yaml");
    let at = behind(&text, ": object.spec.");
    assert_eq!(labels(&workspace, "policy.yaml", at, ItemKind::Field), ["doors", "phase", "size"]);
}

#[test]
fn definitions_are_found_in_other_files() {
    let workspace = workspace(Encoding::Utf16);
    let found = workspace.definition("policy.yaml", behind(POLICY, "object.spec.doo")).expect("a field");
    assert_eq!((&*found.file, shown(&DEFINITION, &found.range)), ("shop.yaml", "doors".to_owned()));
    let found = workspace.definition("policy.yaml", behind(POLICY, "d.na")).expect("a field of an element");
    assert_eq!(found.range.start, behind(&DEFINITION, "properties:\n                    "));
    let found = workspace
        .definition("policy.yaml", behind(POLICY, "size() > 0 &&\n        variables.do"))
        .expect("a variable");
    assert_eq!((&*found.file, found.range.start), ("policy.yaml", behind(POLICY, "- name: ")));
    let found = workspace.definition("policy.yaml", behind(POLICY, "!= para")).expect("params");
    assert_eq!(shown(POLICY, &found.range), "paramKind");
}

#[test]
fn a_variable_is_renamed_wherever_it_is_used() {
    let workspace = workspace(Encoding::Utf16);
    let at = behind(POLICY, "string(variables.do");
    let edits = workspace.rename("policy.yaml", at, "entries").expect("a variable");
    let shown: Vec<_> =
        edits.iter().map(|edit| (edit.range.start.line, shown(POLICY, &edit.range))).collect();
    let lines = [8, 13, 14, 15, 16];
    assert_eq!(shown, lines.map(|line| (line, "doors".to_owned())));
    assert_eq!(workspace.rename("policy.yaml", behind(POLICY, "- name: do"), "entries"), Ok(edits));
    let no = |new: &str| workspace.rename("policy.yaml", at, new).expect_err("no name");
    assert_eq!(no("1st"), RenameError::NoName("1st".to_owned()));
    assert_eq!(no("doors"), RenameError::Taken("doors".to_owned()));
    let fault = workspace.rename("policy.yaml", behind(POLICY, "object.spe"), "a");
    assert_eq!(fault, Err(RenameError::NoVariable));
}

#[test]
fn columns_are_counted_as_the_editor_asks() {
    for (encoding, column) in [(Encoding::Utf8, 48), (Encoding::Utf16, 47)] {
        let workspace = workspace(encoding);
        let edits =
            workspace.rename("policy.yaml", Place { line: 8, character: 11 }, "x").expect("a variable");
        let of_message = edits.iter().find(|edit| edit.range.start.line == 15).expect("in the message");
        assert_eq!(of_message.range.start.character, column, "{encoding:?}");
    }
}
