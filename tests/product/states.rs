//! `admit states` as its users run it: the shipped policies against the diagrams beside them.

use std::process::{Command, Output};

use serde_json::{Value, json};

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

/// A diagram in a folder of policies, with the picture beside it. Everything is decided for all objects.
struct Shipped {
    folder: &'static str,
    definition: &'static str,
    /// `NAME.mmd` and `NAME.svg`.
    name: &'static str,
    /// What is drawn, and of which objects.
    drawn: &'static [&'static str],
}

const SPOKE: &str = "!(has(self.metadata.finalizers) && 'observability.open-cluster-management.io/addon-cleanup' in self.metadata.finalizers)";

/// As the operator reads the state of a pipeline: the condition counts before the initial sync does.
const PIPELINE: &str = "pipeline=!has(self.status) || self.status.pipelineVersion == '' ? 'NEW' \
    : self.status.conditions.filter(c, c.type == 'Valid').size() > 0 \
      && self.status.conditions.filter(c, c.type == 'Valid')[0].status == 'True' ? 'VALID' \
    : self.status.initialSyncInProgress ? 'INITIAL_SYNC' \
    : self.status.conditions.filter(c, c.type == 'Valid').size() > 0 \
      && self.status.conditions.filter(c, c.type == 'Valid')[0].status == 'False' ? 'INVALID' : 'UNKNOWN'";

const fn shipped(
    folder: &'static str,
    definition: &'static str,
    name: &'static str,
    drawn: &'static [&'static str],
) -> Shipped {
    Shipped { folder, definition, name, drawn }
}

const PICTURES: [Shipped; 8] = [
    shipped("datagather", "datagathers", "states", &["--field", "status.dataGatherState"]),
    shipped("mustgather", "mustgathers", "states", &["--field", "status.status"]),
    shipped(
        "observability",
        "observabilityaddons",
        "states",
        &["--field", "status.conditions[type=MetricsCollectorStatus].reason", "--where", SPOKE],
    ),
    shipped(
        "observability",
        "observabilityaddons",
        "uwl-states",
        &["--field", "status.conditions[type=UwlMetricsCollectorStatus].reason", "--where", SPOKE],
    ),
    shipped(
        "clusteroperator",
        "clusteroperators",
        "available",
        &["--field", "status.conditions[type=Available].status"],
    ),
    shipped(
        "clusteroperator",
        "clusteroperators",
        "progressing",
        &["--field", "status.conditions[type=Progressing].status"],
    ),
    shipped(
        "clusteroperator",
        "clusteroperators",
        "degraded",
        &["--field", "status.conditions[type=Degraded].status"],
    ),
    shipped("cyndi", "cyndipipelines", "states", &["--state", PIPELINE]),
];

impl Shipped {
    fn file(&self, extension: &str) -> String {
        format!("policies/{}/{}.{extension}", self.folder, self.name)
    }

    fn run(&self, more: &[&str]) -> Output {
        let (policies, crd) =
            (format!("policies/{}", self.folder), format!("deploy/crds/{}.yaml", self.definition));
        let expected = self.file("mmd");
        let from = ["--policies", &policies, "--policies", &crd, "--expect", &expected];
        states(&[from.as_slice(), self.drawn, more].concat())
    }
}

/// The diagrams are written by hand, and the pictures by `admit states -o svg`, here with `ADMIT_BLESS=1`.
#[test]
fn the_shipped_policies_allow_what_is_drawn_beside_them() {
    for shipped in &PICTURES {
        let output = shipped.run(&["-o", "svg"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{}: {told}", shipped.file("mmd"));
        let (drawn, file) = (String::from_utf8(output.stdout).unwrap(), root().join(shipped.file("svg")));
        if std::env::var_os("ADMIT_BLESS").is_some() {
            std::fs::write(&file, &drawn).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(drawn, kept, "{}: is drawn anew with ADMIT_BLESS=1", shipped.file("svg"));
    }
}

#[test]
fn what_is_drawn_is_written_as_its_schema_says() {
    for shipped in PICTURES.iter().filter(|shipped| ["datagather", "cyndi"].contains(&shipped.folder)) {
        let output = shipped.run(&["-o", "json"]);
        let told = String::from_utf8_lossy(&output.stderr);
        let drawn: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"));
        assert_eq!(drawn["differences"], json!([]));
        assert_eq!(complaints(&schema("states"), &drawn), Vec::<String>::new(), "{}", shipped.folder);
        let is_state = shipped.drawn.contains(&"--state");
        assert_eq!(drawn["pictures"][0]["state"].is_string(), is_state, "{}", shipped.folder);
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
    let schema = json!({
        "type": "object",
        "properties": {
            "phase": {"type": "string", "enum": ["A", "B"]},
            "key": {"type": "string", "maxLength": 20, "default": "none"},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.phase) || self.phase != 'B' || self.key.matches('^x{7}$')", "message": "no such key"},
        ],
    });
    std::fs::write(&crd, testing::definition("things.example.com", "Thing", "Cluster", &schema).to_string())
        .unwrap();
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
    for shipped in &PICTURES {
        // Held to be what is drawn by the test above.
        let svg = std::fs::read_to_string(root().join(shipped.file("svg"))).unwrap();
        let folder = shipped.folder;
        let page = place.path().join("page.html");
        std::fs::write(&page, format!("<html><body style=\"margin:0;width:800px\">{svg}</body></html>"))
            .unwrap();
        let (light, dark) = (shown(browser, &page, QUESTION, false), shown(browser, &page, QUESTION, true));
        assert_eq!(
            (&light["ground"], &dark["ground"]),
            (&"rgb(255, 255, 255)".into(), &"rgb(22, 24, 28)".into())
        );
        assert_ne!(light["ink"], dark["ink"], "{folder}");
        assert_eq!(light["sizes"], json!(["13px"]), "{folder}");
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

/// Ten thousand values, and a hundred flags that are read together: both end at once, and nothing is claimed.
#[test]
fn what_is_too_much_is_undecided_by_its_name() {
    let place = tempfile::tempdir().unwrap();
    let crd = place.path().join("crd.yaml");
    let flags = (0..100).map(|n| (format!("f{n}"), json!({"type": "boolean"})));
    let mut properties: serde_json::Map<_, _> = flags.collect();
    let values: Vec<String> = (0..10_000).map(|n| format!("V{n}")).collect();
    properties.insert("phase".to_owned(), json!({"type": "string", "enum": values}));
    let schema = json!({"type": "object", "properties": properties});
    std::fs::write(&crd, testing::definition("things.example.com", "Thing", "Cluster", &schema).to_string())
        .unwrap();
    let policies = ["--policies", crd.to_str().unwrap()];
    let output = states(&[policies.as_slice(), &["--field", "phase"]].concat());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("`phase` has 10001 values, of which at most 64 are drawn"), "{told}");
    let flags: Vec<String> = (0..100).map(|n| format!("self.f{n}")).collect();
    let state = format!("{} ? 'On' : 'Off'", flags.join(" && "));
    let output = states(&[policies.as_slice(), &["--state", &state]].concat());
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("nothing is forbidden for certain: the state is read from"), "{told}");
}

#[test]
fn states_that_are_no_expressions_are_mistakes_of_usage() {
    let crd = "deploy/crds/mustgathers.yaml";
    for (args, problem) in [
        (["--state", "self.status.status =="], "is no expression over `self`"),
        (["--state", "self.status.nothing == 'A' ? 'A' : 'B'"], "MustGather has no field `status.nothing`"),
        (
            ["--state", "has(self.status.reason) && has(self.spec.serviceAccountName)"],
            "no request writes both",
        ),
        (["--where", "self.status.nothing == 'A'"], "MustGather has no field `status.nothing`"),
    ] {
        let field = if args[0] == "--where" { ["--field", "status.status"].as_slice() } else { &[] };
        let output = states(&[&["--policies", crd], args.as_slice(), field].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(problem), "{args:?}: {told}");
    }
}
