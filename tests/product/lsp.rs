//! `admit lsp`: the real server over a connection in memory, and the program over its standard streams.

mod client;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use admit::cli::Exit;
use lsp_server::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::client::{Client, at, range};

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  variables:
  - name: short
    expression: object.metadata.name.size() < 10
  validations:
  - expression: >-
      'ä' != '💡' && variables.short &&
      object.metadata.nam != 'x'
";

#[test]
fn the_protocol_is_spoken_from_begin_to_end() {
    let (mut client, initialized) = Client::start(json!({"capabilities": {}}));
    let expected = json!({
        "positionEncoding": "utf-16",
        "textDocumentSync": {"openClose": true, "change": 2},
        "completionProvider": {"triggerCharacters": [".", "'", "\""]},
        "hoverProvider": true,
        "definitionProvider": true,
        "renameProvider": true,
        "codeActionProvider": true,
        "codeLensProvider": {},
        "executeCommandProvider": {"commands": ["admit.runCase"]},
        "inlayHintProvider": true,
        "documentSymbolProvider": true,
        "workspaceSymbolProvider": true,
        "foldingRangeProvider": true,
    });
    assert_eq!(initialized["capabilities"], expected);
    let uri = "file:///work/policy.yaml";
    client.open(uri, POLICY);
    let found = client.diagnostics(uri, 1);
    let told: Vec<_> =
        found.iter().map(|found| (&found["code"], &found["severity"], &found["range"])).collect();
    // The dot before the field, in the second line of a folded expression.
    let expected = [("no-binding", 2, range(2, 11, 15)), ("type-check", 2, range(12, 21, 22))];
    for (code, severity, at) in &expected {
        assert!(told.contains(&(&json!(code), &json!(severity), at)), "{code}: {told:#?}");
    }
    let asked =
        json!({"textDocument": {"uri": uri}, "range": range(12, 24, 24), "context": {"diagnostics": []}});
    let actions = client.ask("textDocument/codeAction", asked.clone()).unwrap();
    let edits = json!({"changes": {uri: [{"range": range(12, 22, 25), "newText": "name"}]}});
    assert_eq!(actions, json!([{"title": "write `name` for `nam`", "kind": "quickfix", "edit": edits}]));
    client.change(uri, 2, &json!([{"range": range(12, 25, 25), "text": "e"}]));
    let found = client.diagnostics(uri, 2);
    assert_eq!(client.ask("textDocument/codeAction", asked), Ok(json!([])));
    assert!(found.iter().all(|found| found["code"] != "type-check"), "{found:#?}");

    let told = client.ask("textDocument/hover", at(uri, 12, 24)).unwrap();
    assert_eq!(told["range"], range(12, 22, 26));
    let text = told["contents"]["value"].as_str().unwrap();
    assert!(text.starts_with("```cel\nobject.metadata.name: string\n```"), "{text}");
    // Behind what takes two units of UTF-16, in the first line.
    let definition = client.ask("textDocument/definition", at(uri, 11, 34)).unwrap();
    assert_eq!(definition, json!({"uri": uri, "range": range(7, 10, 15)}));
    let edits = client.ask("textDocument/rename", {
        let mut params = at(uri, 11, 34);
        params["newName"] = json!("brief");
        params
    });
    let edit = |range| json!({"range": range, "newText": "brief"});
    let expected = json!({"changes": {uri: [edit(range(7, 10, 15)), edit(range(11, 31, 36))]}});
    assert_eq!(edits, Ok(expected));
    client.change(uri, 3, &json!([{"range": range(12, 22, 26), "text": "la"}]));
    let items = client.ask("textDocument/completion", at(uri, 12, 24)).unwrap();
    let labels = items["items"].as_array().unwrap().iter().find(|item| item["label"] == "labels").unwrap();
    assert_eq!(labels["textEdit"], json!({"range": range(12, 22, 24), "newText": "labels"}));
    assert_eq!((&labels["kind"], &labels["detail"]), (&json!(5), &json!("map(string, string)")));
    client.tell("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    client.end();
}

#[test]
fn what_files_consist_of_is_listed() {
    let (mut client, _) = Client::start(json!({"capabilities": {}}));
    client.open("file:///a.yaml", POLICY);
    client.open("file:///b.yaml", &POLICY.replace("name: named", "name: other"));
    let document = json!({"textDocument": {"uri": "file:///a.yaml"}});
    let symbols = client.ask("textDocument/documentSymbol", document.clone()).unwrap();
    let range = |from: [u32; 2], to: [u32; 2]| json!({"start": {"line": from[0], "character": from[1]}, "end": {"line": to[0], "character": to[1]}});
    let variable = json!({
        "name": "short", "kind": 13, "range": range([7, 4], [8, 48]), "selectionRange": range([7, 10], [7, 15]),
    });
    assert_eq!((&symbols[0]["name"], &symbols[0]["kind"]), (&json!("named"), &json!(5)));
    assert_eq!(symbols[0]["detail"], "ValidatingAdmissionPolicy");
    assert_eq!(symbols[0]["selectionRange"], range([2, 17], [2, 22]));
    assert_eq!(symbols[0]["children"][0], variable);
    let folds = client.ask("textDocument/foldingRange", document).unwrap();
    assert_eq!(folds[0], json!({"startLine": 0, "endLine": 12}));
    // The characters of a name in their order, in every file.
    let mut named = |query: &str| {
        let found = client.ask("workspace/symbol", json!({"query": query})).unwrap();
        let all = found.as_array().unwrap().iter();
        all.map(|one| (one["name"].clone(), one["containerName"].clone(), one["location"]["uri"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(named("NMD"), [(json!("named"), Value::Null, json!("file:///a.yaml"))]);
    let short = named("short");
    assert_eq!(short[0], (json!("short"), json!("named"), json!("file:///a.yaml")));
    assert!(short.contains(&(json!("short"), json!("other"), json!("file:///b.yaml"))), "{short:?}");
    client.end();
}

#[test]
fn columns_are_bytes_where_the_editor_counts_bytes() {
    let capabilities = json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}});
    let (mut client, initialized) = Client::start(json!({"capabilities": capabilities}));
    assert_eq!(initialized["capabilities"]["positionEncoding"], "utf-8");
    let uri = "untitled:1";
    client.open(uri, POLICY);
    let definition = client.ask("textDocument/definition", at(uri, 11, 36)).unwrap();
    assert_eq!(definition, json!({"uri": uri, "range": range(7, 10, 15)}));
    client.end();
}

#[test]
fn what_lint_says_is_what_the_editor_is_told() {
    let place = TempDir::new().unwrap();
    let text = POLICY.replace("variables.short &&", "variables.shor &&");
    fs::write(place.path().join("policy.yaml"), &text).unwrap();
    let linted = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["lint", "-o", "json", "policy.yaml"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let linted: Value = serde_json::from_slice(&linted.stdout).unwrap();
    let (mut client, _) = Client::start(json!({"capabilities": {}}));
    let uri = format!("file://{}/policy.yaml", place.path().display());
    client.open(&uri, &text);
    let told = client.diagnostics(&uri, 1);
    let findings = linted["findings"].as_array().unwrap();
    assert_eq!(told.len(), findings.len(), "{told:#?}\n{findings:#?}");
    for (told, found) in told.iter().zip(findings) {
        assert_eq!(told["code"], found["code"]);
        assert_eq!(
            told["range"]["start"]["line"].as_u64().map(|line| line + 1),
            found["line"].as_u64(),
            "{found}"
        );
        assert!(told["message"].as_str().unwrap().starts_with(found["message"].as_str().unwrap()), "{told}");
    }
    client.end();
}

#[test]
fn policies_know_the_definitions_of_the_folder() {
    let place = TempDir::new().unwrap();
    let folder = format!("file://{}", place.path().display());
    fs::write(place.path().join("crd.yaml"), definition(1)).unwrap();
    let (mut client, _) = Client::start(json!({"capabilities": {}, "rootUri": folder}));
    let text = POLICY.replace("''], apiVersions", "example.com], apiVersions").replace("configmaps", "shops");
    let uri = format!("{folder}/policy.yaml");
    client.open(&uri, &text.replace("object.metadata.nam != 'x'", "object.spec.field0 != 'x'"));
    let found = client.ask("textDocument/definition", at(&uri, 12, 22)).unwrap();
    assert_eq!(found["uri"], format!("{folder}/crd.yaml"));
    assert_eq!(found["range"]["end"]["character"].as_u64(), Some(20));
    client.end();
}

#[test]
fn a_case_is_run_and_its_values_stand_beside_the_lines() {
    let place = TempDir::new().unwrap();
    let folder = format!("file://{}", place.path().display());
    let bound = "---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: named}
spec: {policyName: named, validationActions: [Deny]}
";
    let policy = format!("{}{bound}", POLICY.replace("object.metadata.nam ", "object.metadata.name "));
    let suite = "apiVersion: admit/v1
kind: Suite
documents: [policy.yaml]
cases:
- name: 'ä short name'
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}
  expect: {outcome: allow}
- name: denied
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: b}}
  expect: {outcome: allow}
";
    fs::write(place.path().join("policy.yaml"), &policy).unwrap();
    fs::write(place.path().join("a.suite.yaml"), suite).unwrap();
    let refreshes = json!({"workspace": {"inlayHint": {"refreshSupport": true}}});
    let (mut client, _) = Client::start(json!({"capabilities": refreshes}));
    let (policy_uri, suite_uri) = (format!("{folder}/policy.yaml"), format!("{folder}/a.suite.yaml"));
    client.open(&policy_uri, &policy);
    client.open(&suite_uri, suite);
    let lenses = client.ask("textDocument/codeLens", json!({"textDocument": {"uri": suite_uri}})).unwrap();
    let lens = |range, name| {
        let arguments = json!([suite_uri, name]);
        json!({"range": range, "command": {"title": "run this case", "command": "admit.runCase", "arguments": arguments}})
    };
    assert_eq!(lenses, json!([lens(range(4, 8, 22), "ä short name"), lens(range(7, 8, 14), "denied")]));
    let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let hints = json!({"textDocument": {"uri": policy_uri}, "range": whole});
    assert_eq!(client.ask("textDocument/inlayHint", hints.clone()), Ok(json!([])), "nothing was run");
    let ran = client.ask("workspace/executeCommand", lenses[0]["command"].clone()).unwrap();
    assert_eq!(ran, json!({"passed": true, "outcome": "allow", "message": "PASS: ä short name: allow"}));
    match client.next() {
        Message::Request(request) => assert_eq!(request.method, "workspace/inlayHint/refresh"),
        other => panic!("{other:?}"),
    }
    let shown = client.ask("textDocument/inlayHint", hints.clone()).unwrap();
    let shown: Vec<_> =
        shown.as_array().unwrap().iter().map(|hint| (&hint["position"], &hint["label"])).collect();
    let end = |line: usize| json!({"line": line, "character": policy.lines().nth(line).unwrap().encode_utf16().count()});
    let of_line = |line: usize| {
        shown.iter().find(|(at, _)| **at == end(line)).map(|(_, label)| label.as_str().unwrap())
    };
    assert!(of_line(12).is_some_and(|label| label.contains("object.metadata.name = \"a\"")), "{shown:?}");
    assert!(of_line(11).is_some_and(|label| label.contains("variables.short = true")), "{shown:?}");
    // What was changed since has no values.
    client.change(&policy_uri, 2, &json!([{"range": range(12, 30, 31), "text": "="}]));
    let shown = client.ask("textDocument/inlayHint", hints).unwrap();
    assert!(shown.as_array().unwrap().iter().all(|hint| hint["position"]["line"] != 12), "{shown}");
    let arguments = json!({"command": "admit.runCase", "arguments": [suite_uri, "denied"]});
    let ran = client.ask("workspace/executeCommand", arguments).unwrap();
    assert_eq!((&ran["passed"], &ran["outcome"]), (&json!(false), &json!("deny")));
    assert!(matches!(client.next(), Message::Request(_)));
    let nothing = json!({"command": "admit.runCase", "arguments": [suite_uri, "nothing"]});
    let (_, why) = client.ask("workspace/executeCommand", nothing).unwrap_err();
    assert!(why.contains("is called `nothing`"), "{why}");
    client.end();
}

#[test]
fn what_is_wrong_with_messages_is_told_and_the_server_goes_on() {
    let (mut client, _) = Client::start(json!({"capabilities": {}}));
    assert_eq!(client.ask("textDocument/hover", json!({"textDocument": 1})).unwrap_err().0, -32_602);
    assert_eq!(client.ask("textDocument/formatting", json!({})).unwrap_err().0, -32_601);
    client.tell("textDocument/didOpen", json!([]));
    client.tell(
        "textDocument/didChange",
        json!({"textDocument": {"uri": "file:///none", "version": 1}, "contentChanges": []}),
    );
    client.tell("$/whatever", json!(7));
    let uri = "file:///huge.yaml";
    client.open(uri, &"#".repeat(16 * 1024 * 1024 + 1));
    let found = client.diagnostics(uri, 1);
    assert!(found[0]["message"].as_str().unwrap().contains("too many for a manifest"), "{found:?}");
    assert!(client.told.iter().any(|told| told.method == "window/showMessage"), "{:?}", client.told);
    assert_eq!(client.ask("textDocument/hover", at(uri, 0, 0)), Ok(Value::Null));
    client.change(uri, 2, &json!([{"text": POLICY}]));
    assert!(!client.diagnostics(uri, 2).is_empty(), "it is small enough now");
    client.end();
}

#[test]
fn an_editor_that_goes_away_ends_the_server() {
    let (client, _) = Client::start(json!({"capabilities": {}}));
    drop(client.connection);
    assert_eq!(client.server.join().unwrap(), Exit::Differs);
}

#[test]
fn the_program_speaks_over_its_standard_streams() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["lsp", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = program.stdin.take().unwrap();
    let mut stdout = BufReader::new(program.stdout.take().unwrap());
    let initialize =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}});
    let document = json!({"uri": "file:///a.yaml", "languageId": "yaml", "version": 7, "text": POLICY});
    let open =
        json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}});
    let initialized = json!({"jsonrpc": "2.0", "method": "initialized", "params": {}});
    let mut write = |body: String| write!(stdin, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut next = || Message::read(&mut stdout).unwrap();
    write(initialize.to_string());
    assert!(matches!(next(), Some(Message::Response(answer)) if answer.id == 1.into()));
    write(initialized.to_string());
    write("no JSON".to_owned());
    write(open.to_string());
    assert!(matches!(next(), Some(Message::Response(answer)) if answer.response_result.is_err()));
    match next() {
        Some(Message::Notification(told)) => assert_eq!(told.params["version"], 7),
        other => panic!("{other:?}"),
    }
    let shutdown = json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}).to_string();
    let exit = json!({"jsonrpc": "2.0", "method": "exit"}).to_string();
    write(shutdown);
    write(exit);
    assert!(matches!(next(), Some(Message::Response(answer)) if answer.id == 2.into()));
    assert_eq!(program.wait().unwrap().code(), Some(0));
}

/// A definition of many fields, each tenth with a rule.
fn definition(fields: usize) -> String {
    let mut text = "spec:\n  type: object\n  properties:\n".to_owned();
    for field in 0..fields {
        let _ = write!(
            text,
            "    field{field}:\n      type: string\n      maxLength: 63\n      description: The field {field}.\n"
        );
        if field % 10 == 0 {
            text += "      x-kubernetes-validations:\n      - rule: self.size() > 1\n";
        }
    }
    testing::shops(&(text + "  x-kubernetes-validations:\n  - rule: self.field0 != 'x'\n"))
}

fn resident() -> Option<u64> {
    let status = fs::read_to_string(Path::new("/proc/self/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

/// What a key costs in a definition of 5,000 lines: `cargo test -p admit --test product -- --ignored --nocapture lsp`.
#[test]
#[ignore = "a measurement: prints its figures"]
fn a_key_in_five_thousand_lines() {
    const KEYS: u32 = 20;
    let before = resident().unwrap_or_default();
    let text = definition(1_200);
    let lines = u32::try_from(text.lines().count()).unwrap();
    assert!(lines > 5_000, "{lines}");
    let (mut client, _) = Client::start(json!({"capabilities": {}}));
    let uri = "file:///crd.yaml";
    client.open(uri, &text);
    client.diagnostics(uri, 1);
    let (line, column) = (lines - 1, 25);
    let (mut told, mut completed) = (Vec::new(), Vec::new());
    for key in 0..KEYS {
        let version = i32::try_from(key).unwrap() + 2;
        let start = Instant::now();
        client.change(uri, version, &json!([{"range": range(line, column, column + key % 2), "text": if key % 2 == 0 { "f" } else { "" }}]));
        client.diagnostics(uri, version);
        told.push(start.elapsed());
        let start = Instant::now();
        let items = client.ask("textDocument/completion", at(uri, line, column)).unwrap();
        completed.push(start.elapsed());
        assert!(items["items"].as_array().unwrap().len() > 100);
    }
    told.sort();
    completed.sort();
    let after = resident().unwrap_or_default();
    let middle = |times: &[Duration]| times[times.len() / 2];
    let text = format!(
        "{lines} lines: diagnostics {:?} (most {:?}), completion {:?} (most {:?}), memory {} kB more, {after} kB in all\n",
        middle(&told),
        told[told.len() - 1],
        middle(&completed),
        completed[completed.len() - 1],
        after.saturating_sub(before),
    );
    std::io::stderr().write_all(text.as_bytes()).unwrap();
    client.end();
}
