//! The real helm, where there is one: what it makes of the chart is what the chart's own reader makes of it, it has nothing
//! to complain of, and it refuses the values that the program refuses.

use std::process::{Command, Output, Stdio};

use super::base;
use super::chart::{SETTINGS, Values, rendered};
use super::documents;

/// Whether the real helm is at hand; says so when it is not.
pub(crate) fn has_helm() -> bool {
    let found = Command::new("helm").args(["version", "--short"]).stdout(Stdio::null()).status().is_ok();
    if !found {
        testing::skip(testing::Need::Helm, "there is no helm on the PATH");
    }
    found
}

#[test]
fn helm_renders_what_the_reader_renders() {
    if !has_helm() {
        return;
    }
    for settings in SETTINGS {
        let folder = base(settings);
        let deploy = folder.path().join("deploy");
        let chart = deploy.join("chart").display().to_string();
        let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let run = |command: &[&str]| {
            let args = [command, &set].concat();
            let output = helm(&args);
            assert!(output.status.success(), "helm {args:?}: {}", told(&output));
            output
        };
        let linted = told(&run(&["lint", "--strict", &chart, "--namespace=admit-system"]));
        assert!(!linted.contains("[WARNING]") && !linted.contains("[ERROR]"), "{settings:?}: {linted}");

        let template = ["template", "admit", &chart, "--namespace=admit-system"];
        let ours = rendered(&deploy.join("chart"), &Values::of(&deploy.join("chart"), settings));
        let theirs = documents(&String::from_utf8(run(&template).stdout).unwrap());
        assert_eq!(theirs, ours, "{settings:?}");
        let with_definitions = run(&[&template[..], &["--include-crds"]].concat());
        let mut more = documents(&String::from_utf8(with_definitions.stdout).unwrap());
        more.retain(|key, _| !ours.contains_key(key));
        let kinds: Vec<&str> = more.keys().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["CustomResourceDefinition"; 5]);
    }
}

#[test]
fn helm_refuses_values_that_the_program_refuses() {
    if !has_helm() {
        return;
    }
    let folder = base(&[]);
    let chart = folder.path().join("deploy/chart").display().to_string();
    let refused = [
        ("certificates=none", "certificates: certificates must be one of"),
        ("failurePolicy=fail", "failurePolicy: failurePolicy must be one of"),
        ("image=a b", "image: Does not match pattern"),
        ("replicas=0", "replicas: Must be greater than or equal to 1"),
        ("size=1", "Additional property size is not allowed"),
        (
            "certificates=self-managed,watchCluster=false",
            "watchCluster: watchCluster must be one of the following: true",
        ),
        (
            "clusterExceptions=true,watchCluster=false",
            "watchCluster: watchCluster must be one of the following: true",
        ),
    ];
    for (settings, reason) in refused {
        let output = helm(&["template", "admit", &chart, "--set", settings]);
        assert!(!output.status.success() && told(&output).contains(reason), "{settings}: {}", told(&output));
    }
}

/// Without anything that its user has set.
fn helm(args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    Command::new("helm").args(args).env("HOME", home.path()).output().unwrap()
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
