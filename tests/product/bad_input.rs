//! `admit up` with something wrong: which exit code, and whether the message names the place and the remedy.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use admit::admission::tls::Authority;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

use crate::running::Workplace;

/// Starts with further arguments; every start of this module ends by itself.
fn up(place: &Workplace, args: &[&str]) -> Output {
    place.command().args(args).output().unwrap()
}

/// What was said about the mistake: one line unless the message itself has more.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write(place: &Workplace, path: &str, text: &str) -> String {
    let path = place.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: broken
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: ['']
      apiVersions: [v1]
      operations: [CREATE]
      resources: [pods]
  validations:
  - expression: object.metadata.name == 'a'
  - expression: 'object.metadata.name + '
";

#[test]
fn a_policy_that_does_not_compile_ends_with_3_and_shows_the_place() {
    let place = Workplace::new();
    let file = write(&place, "broken/policy.yaml", POLICY);
    let output = up(&place, &["--policies", "broken"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("broken/policy.yaml:14:5: spec.validations[1].expression: "), "{file}: {said}");
    assert!(said.contains("Syntax error") && said.contains("^"), "a caret under the mistake: {said}");
}

#[test]
fn every_mistake_of_every_file_is_told() {
    let place = Workplace::new();
    write(&place, "broken/a.yaml", POLICY);
    write(
        &place,
        "broken/b.yaml",
        &POLICY.replace("name: broken", "name: other").replace("operations: [CREATE]", "operations: [MAKE]"),
    );
    let output = up(&place, &["--policies", "broken"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("broken/a.yaml:14:5"), "{said}");
    assert!(
        said.contains("broken/b.yaml:10:20: spec.matchConstraints.resourceRules[0].operations[0]"),
        "{said}"
    );
}

#[test]
fn text_that_is_no_yaml_ends_with_3_and_shows_the_line() {
    let place = Workplace::new();
    write(&place, "broken/policy.yaml", "kind: A\n  b: [\n");
    let output = up(&place, &["--policies", "broken"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("broken/policy.yaml:2:"), "{}", said(&output));
}

#[test]
fn a_definition_whose_rule_does_not_compile_ends_with_3() {
    let place = Workplace::new();
    let crd = fs::read_to_string(place.path().join("deploy/crds/datagathers.yaml")).unwrap();
    let broken = crd.replacen("self == oldSelf", "self == oldSelf.nothing", 1);
    assert_ne!(crd, broken);
    write(&place, "crds/datagathers.yaml", &broken);
    let output = up(&place, &["--crds", "crds"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let rule = broken.lines().position(|line| line.contains("oldSelf.nothing")).unwrap();
    let near = (rule.saturating_sub(1)..=rule + 1)
        .any(|line| said.contains(&format!("datagathers.yaml:{}:", line + 1)));
    assert!(near, "the line of the rule is {}: {said}", rule + 1);
}

#[test]
fn what_is_neither_definition_nor_policy_is_told() {
    let place = Workplace::new();
    write(&place, "crds/pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n");
    let output = up(&place, &["--crds", "crds"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("crds/pod.yaml:1:1: "), "{}", said(&output));
}

#[test]
fn a_port_in_use_is_told_in_one_line_with_the_flag_that_moves_it() {
    let place = Workplace::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, mut command) in [
        ("--listen", place.command_on(&address, "127.0.0.1:0")),
        ("--admission-listen", place.command_on("127.0.0.1:0", &address)),
    ] {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
        assert!(said(&output).contains(&address) && said(&output).contains(flag), "{}", said(&output));
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_told_in_one_line() {
    let place = Workplace::new();
    let file = write(&place, "file", "");
    let output = up(&place, &["--state-dir", Path::new(&file).join("below").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    assert!(
        said(&output).contains("cannot write") && said(&output).contains("choose another"),
        "{}",
        said(&output)
    );
}

/// Before anything listens, and before a word of what to try.
#[test]
fn settings_of_gatherings_that_cannot_work_are_told_in_one_line() {
    let place = Workplace::new();
    let file = write(&place, "file", "no certificate");
    let url = ["--upload-url", "https://uploads.example"];
    for (args, wanted) in [
        (vec!["--archive-dir", &file], "cannot use the archive folder"),
        (vec!["--upload-url", "nonsense"], "upload URL: `nonsense` must start with https://"),
        ([&url[..], &["--upload-ca", &file]].concat(), "it holds no certificate; give the certificates"),
        ([&url[..], &["--upload-ca", "nowhere"]].concat(), "cannot use `nowhere`"),
        ([&url[..], &["--upload-token-file", "nowhere"]].concat(), "cannot read the upload token `nowhere`"),
    ] {
        let output = up(&place, &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert_eq!(said(&output).lines().count(), 1, "{args:?}: {}", said(&output));
        assert!(said(&output).contains(wanted) && output.stdout.is_empty(), "{args:?}: {}", said(&output));
    }
}

/// The key is written first: a start that was killed between the two leaves it alone, or beside the old certificate.
#[test]
fn an_authority_whose_key_is_another_is_refused_and_a_key_alone_is_replaced() {
    let place = Workplace::new();
    let now = OffsetDateTime::now_utc();
    let folder = place.path().join(".admit");
    let first = Authority::open(&folder, now).unwrap().certificate_pem().to_owned();
    let other = TempDir::new().unwrap();
    Authority::open(other.path(), now).unwrap();
    fs::copy(other.path().join("ca.key"), folder.join("ca.key")).unwrap();
    let output = up(&place, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    let wanted = "it is not the key of ca.crt; delete ca.crt and ca.key there";
    assert!(said(&output).contains(wanted), "{}", said(&output));

    fs::remove_file(folder.join("ca.crt")).unwrap();
    assert_ne!(Authority::open(&folder, now).unwrap().certificate_pem(), first);
}

#[test]
fn an_expired_authority_is_told_in_one_line_with_the_remedy() {
    let place = Workplace::new();
    Authority::open(&place.path().join(".admit"), OffsetDateTime::now_utc() - Duration::days(11 * 365))
        .unwrap();
    let output = up(&place, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    assert!(said(&output).contains("expired on") && said(&output).contains("delete"), "{}", said(&output));
}

#[test]
fn data_that_is_damaged_is_told_in_one_line() {
    let place = Workplace::new();
    write(&place, ".admit/data.redb", "no database");
    let output = up(&place, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    assert!(said(&output).contains("data.redb") && said(&output).contains("delete it"), "{}", said(&output));
}

#[test]
fn a_folder_in_use_is_told_in_one_line() {
    let place = Workplace::new();
    let running = place.start();
    let output = up(&place, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    assert!(said(&output).contains("--state-dir"), "{}", said(&output));
    running.terminate();
}

/// Before, what it was busy with was given up only at the end of the grace, after 25 seconds.
#[test]
fn a_start_that_waits_for_a_pipe_ends_when_it_is_asked_to() {
    let place = Workplace::new();
    let pipe = place.path().join("pipe.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = place.command().args(["--policies", "pipe.yaml"]).stderr(Stdio::piped()).spawn().unwrap();
    // Opened once somebody reads.
    let held = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    drop(held);
    assert!(!status.success() && status.code().is_some(), "{status}");
    assert!(asked.elapsed().as_secs() < 20, "it ended after {:?}", asked.elapsed());
}

#[test]
fn unknown_admission_plugins_are_refused_with_those_that_there_are() {
    let place = Workplace::new();
    let output = up(&place, &["--disable-admission-plugins", "ServiceAccount,Priorty"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("disable-admission-plugins plugin \"Priorty\" is unknown; those that it has: "),
        "{said}"
    );
    assert!(said.contains("NamespaceLifecycle") && said.contains("Priority, "), "{said}");
}
