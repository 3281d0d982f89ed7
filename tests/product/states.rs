//! `admit states` as its users run it: the shipped policies against the diagrams beside them.

use std::process::{Command, Output};

use serde_json::Value;

use crate::output_schemas::schema;
use crate::repository::root;
use crate::suites::page::{browser, shown};
use crate::support::json_schema::complaints;

fn states(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit"))
        .arg("states")
        .args(args)
        .args(["--timeout", "10m"])
        .current_dir(root())
        .output()
        .unwrap()
}

/// Folder, definition and field, each with a diagram in the folder. Everything is decided for all objects.
const PICTURES: [(&str, &str, &str); 2] =
    [("datagather", "datagathers", "status.dataGatherState"), ("mustgather", "mustgathers", "status.status")];

#[test]
fn the_shipped_policies_allow_what_is_drawn_beside_them() {
    for (folder, definition, field) in PICTURES {
        let policies = format!("policies/{folder}");
        let output = states(&[
            "--policies",
            &policies,
            "--policies",
            &format!("deploy/crds/{definition}.yaml"),
            "--field",
            field,
            "--expect",
            &format!("{policies}/states.mmd"),
            "-o",
            "json",
        ]);
        let told = String::from_utf8_lossy(&output.stderr);
        let drawn: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{folder}: {told}"));
        assert_eq!(drawn["differences"], serde_json::json!([]), "{folder}: {field}");
        assert_eq!(output.status.code(), Some(0), "{folder}: {field}: {told}");
        assert_eq!(complaints(&schema("states"), &drawn), Vec::<String>::new(), "{folder}: {field}");
    }
}

#[test]
fn differences_are_named_and_have_their_code() {
    let place = tempfile::tempdir().unwrap();
    let wanted = place.path().join("wanted.mmd");
    let text = "stateDiagram-v2\n[*] --> absent\nabsent --> Pending\nPending --> Completed\n";
    std::fs::write(&wanted, text).unwrap();
    let output = states(&[
        "--policies",
        "policies/datagather",
        "--policies",
        "deploy/crds/datagathers.yaml",
        "--field",
        "status.dataGatherState",
        "--expect",
        wanted.to_str().unwrap(),
    ]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    for line in [
        "differs: Pending -> Completed: in the diagram, and forbidden: a Pending run cannot become Completed directly",
        "differs: Pending -> Running: allowed, and not in the diagram",
        "  dead end: Completed: nothing may follow",
    ] {
        assert!(told.lines().any(|own| own == line), "{line}\n{told}");
    }
    assert!(told.lines().last().is_some_and(|last| last.starts_with("FAIL: 1 field: ")), "{told}");
}

/// Without a rule that looks at the field alone, what was not found may be there.
#[test]
fn what_is_undecided_has_a_code_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let crd = place.path().join("crd.yaml");
    let text = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          phase: {type: string, enum: [A, B]}
          key: {type: string, maxLength: 20, default: none}
        x-kubernetes-validations:
        - rule: \"!has(self.phase) || self.phase != 'B' || self.key.matches('^x{7}$')\"
          message: no such key
";
    std::fs::write(&crd, text).unwrap();
    let output = states(&["--policies", crd.to_str().unwrap(), "--field", "phase"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("was not reached, as far as tried: B"), "{told}");
    assert!(told.lines().last().is_some_and(|last| last.starts_with("UNDECIDED: 1 field: ")), "{told}");
}

#[test]
fn what_cannot_be_drawn_is_a_mistake_of_usage() {
    let crd = "deploy/crds/datagathers.yaml";
    for (args, problem) in [
        (["--kind", "Nothing"], "there is no kind `Nothing` among the files; there are: DataGather"),
        (["--field", "status.nothing"], "DataGather has no field `status.nothing`"),
        (["--field", "status.startTime"], "`status.startTime` has no few values"),
        (["--expect", "README.md"], "there is no `stateDiagram-v2` in it"),
        (["--expect", "/dev/zero"], "cannot read `/dev/zero`: "),
    ] {
        let output = states(&[&["--policies", crd], args.as_slice()].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(problem), "{args:?}: {told}");
    }
    let output = states(&["--policies", "policies/datagather"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("name the file of its CustomResourceDefinition with --policies"), "{told}");
}

/// What a reader sees: texts with their places, and colours.
const QUESTION: &str = "
const seen = {
  ground: getComputedStyle(document.querySelector('.ground')).fill,
  ink: getComputedStyle(document.querySelector('text')).fill,
  sizes: [...new Set([...document.querySelectorAll('text')].map(text => getComputedStyle(text).fontSize))],
  scale: document.querySelector('svg').getBoundingClientRect().width / document.querySelector('svg').viewBox.baseVal.width,
  width: document.querySelector('svg').getBoundingClientRect().width,
  texts: [...document.querySelectorAll('text')].map(text => {
    const box = text.getBoundingClientRect();
    return {text: text.textContent, kind: text.getAttribute('class'), left: box.left, right: box.right, top: box.top, bottom: box.bottom};
  }),
  changes: document.querySelectorAll('path.arrow').length,
};";

#[test]
fn pictures_are_readable_in_light_and_dark() {
    let Some(browser) = browser() else {
        return testing::skip(testing::Need::Chromium, "there is no chromium on the PATH");
    };
    let place = tempfile::tempdir().unwrap();
    for (folder, definition, field) in PICTURES {
        let output = states(&[
            "--policies",
            &format!("policies/{folder}"),
            "--policies",
            &format!("deploy/crds/{definition}.yaml"),
            "--field",
            field,
            "-o",
            "svg",
        ]);
        let svg = String::from_utf8(output.stdout).unwrap();
        let page = place.path().join("page.html");
        std::fs::write(&page, format!("<html><body style=\"margin:0;width:800px\">{svg}</body></html>"))
            .unwrap();
        let (light, dark) = (shown(browser, &page, QUESTION, false), shown(browser, &page, QUESTION, true));
        assert_eq!(
            (&light["ground"], &dark["ground"]),
            (&"rgb(255, 255, 255)".into(), &"rgb(22, 24, 28)".into())
        );
        assert_ne!(light["ink"], dark["ink"], "{folder}");
        assert_eq!(light["sizes"], serde_json::json!(["13px"]), "{folder}");
        assert_eq!(light["width"], 800, "{folder}");
        assert!(light["changes"].as_u64() > Some(5), "{folder}: {light:#}");
        let texts = light["texts"].as_array().unwrap();
        let number = |text: &Value, side: &str| text[side].as_f64().unwrap();
        for (at, one) in texts.iter().enumerate() {
            assert!(number(one, "left") >= 0.0 && number(one, "right") <= 800.0, "{folder}: {one:#}");
            for other in &texts[at + 1..] {
                let beside = number(one, "right") <= number(other, "left")
                    || number(other, "right") <= number(one, "left");
                // Lines of text stand closer than their boxes are high.
                let above = number(one, "bottom") <= number(other, "top") + 2.0
                    || number(other, "bottom") <= number(one, "top") + 2.0;
                assert!(beside || above, "{folder}: {one:#} lies over {other:#}");
            }
        }
    }
}
