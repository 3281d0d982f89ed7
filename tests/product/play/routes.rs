//! What the routes answer: every example, mistakes at their places, bounds, and who may ask.

use std::process::Command;

use serde_json::{Value, json};

use super::{Play, fields};
use crate::output_schemas::schema;
use crate::support::json_schema::complaints;

/// Words that examples of each of the five systems have.
const SYSTEMS: [&str; 5] =
    ["ClusterOperator", "CyndiPipeline", "DataGather", "MustGather", "ObservabilityAddon"];

#[tokio::test]
async fn every_example_comes_to_its_outcome() {
    let play = Play::start(&[]);
    let modes = play.modes().await;
    let whole = play.client().await.get("/modes").await.unwrap().json();
    assert_eq!(unfit("playModes", &whole), Vec::<String>::new());
    let mut titles = String::new();
    for mode in &modes {
        let name = mode["name"].as_str().unwrap();
        let examples = mode["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "{name}");
        for example in examples {
            let title = example["title"].as_str().unwrap();
            titles.push_str(title);
            let answer = play.evaluate(name, fields(example)).await;
            assert_eq!(answer["verdict"]["outcome"], example["outcome"], "{name}, {title}: {answer:#}");
            assert_eq!(unfit("playEvaluated", &answer), Vec::<String>::new(), "{name}, {title}");
            let expressions = answer["expressions"].as_array().map_or(0, Vec::len);
            // A definition may have a schema and no rule.
            assert!(expressions > 0 || name == "crd", "{name}, {title}: {answer:#}");
            let spoken = example["outcome"] != "deny" || answer["messages"][0]["message"].is_string();
            assert!(spoken, "{name}, {title}: {answer:#}");
        }
    }
    assert_eq!(modes.len(), 8, "a mode for each place that is evaluated");
    for system in SYSTEMS {
        assert!(titles.contains(system), "no example of {system}");
    }
}

/// What of an answer the published schema does not allow.
pub(super) fn unfit(part: &str, answer: &Value) -> Vec<String> {
    let schema = schema("play");
    let of_part = json!({"$ref": format!("#/$defs/{part}"), "$defs": schema["$defs"]});
    let found = complaints(&of_part, answer);
    assert_eq!(found.is_empty(), complaints(&schema, answer).is_empty(), "{part}: {found:?}");
    found
}

/// What expressions cost together is what the bars of each say together, and a budget that is spent is told.
#[tokio::test]
async fn all_expressions_of_a_policy_have_a_bar() {
    let play = Play::start(&["--timeout", "60s"]);
    let policy = |rule: &str, count: usize| {
        let rules = format!("  - {{expression: '{rule}'}}\n").repeat(count);
        format!(
            "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: a}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}}]
  matchConditions: [{{name: named, expression: \"object.metadata.name.startsWith('a')\"}}]
  auditAnnotations: [{{key: k, valueExpression: \"'v'\"}}]
  validations:
  - {{expression: 'object.data.size() > 1', messageExpression: \"'few: ' + string(object.data.size())\"}}
{rules}"
        )
    };
    let binding = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec: {policyName: a, validationActions: [Deny]}
";
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n}, data: {k: v}}";
    let ask = |rule: &str, count| json!({"policy": policy(rule, count), "binding": binding, "new": object});
    let answer = play.evaluate("policy", ask("has(object.data)", 1)).await;
    let budgets = answer["budgets"].as_array().unwrap();
    let of: Vec<&str> = budgets.iter().map(|budget| budget["of"].as_str().unwrap()).collect();
    let expected =
        ["policy a: match conditions", "policy a: validations and messages", "policy a: audit annotations"];
    assert_eq!(of, expected);
    let sum = |part: &str| -> u64 {
        let own = answer["expressions"].as_array().unwrap().iter();
        own.filter(|one| one["path"].as_str().unwrap().contains(part))
            .map(|one| one["cost"].as_u64().unwrap())
            .sum()
    };
    for (budget, (part, limit)) in budgets.iter().zip([
        ("matchConditions", 2_500_000),
        ("validations", 10_000_000),
        ("auditAnnotations", 10_000_000),
    ]) {
        assert_eq!(
            (budget["cost"].as_u64(), budget["limit"].as_u64(), &budget["exceeded"]),
            (Some(sum(part)), Some(limit), &json!(false)),
            "{part}: {answer:#}"
        );
    }
    // Below what one may cost, and together beyond what all may.
    let rounds: Vec<String> = (0..90).map(|number| number.to_string()).collect();
    let list = format!("[{}]", rounds.join(","));
    let rule = format!("{list}.all(a, {list}.all(b, a + b >= 0 && a * b >= 0))");
    let spent = play.evaluate("policy", ask(&rule, 200)).await;
    let rules = &spent["budgets"][1];
    assert_eq!(
        (&rules["exceeded"], &rules["percent"]),
        (&json!(true), &json!(100.0)),
        "{:#}",
        spent["budgets"]
    );
    assert_eq!(unfit("playEvaluated", &spent), Vec::<String>::new());
}

#[tokio::test]
async fn a_refusal_names_its_field_its_rule_and_every_value() {
    let play = Play::start(&[]);
    let crd = &play.modes().await[0];
    let answer = play.evaluate("crd", fields(&crd["examples"][0])).await;
    let messages = answer["messages"].as_array().unwrap();
    let said = |text: &str| messages.iter().find(|one| one["message"].as_str().unwrap().contains(text));
    let refused = said("state cannot be changed backwards").unwrap();
    assert_eq!(
        (refused["path"].as_str(), refused["field"].as_str()),
        (Some("status.dataGatherState"), Some("new"))
    );
    assert_eq!((refused["line"].as_u64(), refused["column"].as_u64()), (Some(5), Some(10)), "{refused}");
    assert_eq!(answer["status"]["code"], 422);

    let expressions = answer["expressions"].as_array().unwrap();
    let rule =
        expressions.iter().find(|one| one["path"].as_str().unwrap().contains("[dataGatherState]")).unwrap();
    let text: String =
        rule["parts"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
    assert!(text.contains("oldSelf == 'Running'"), "{text}");
    assert!(rule["cost"].as_u64() > Some(1) && rule["limit"] == 1_000_000, "{rule:#}");
    let trace = &rule["traces"][0];
    assert_eq!(
        (&trace["at"], &trace["tree"][0]["value"]),
        (&json!("status.dataGatherState"), &json!("false"))
    );
    assert!(trace["tree"][0]["parts"].as_array().unwrap().len() > 1, "{trace:#}");
    assert_eq!(rule["place"]["field"], "crd");
    // What was not reached is told of each expression, and of all together.
    assert!(expressions.iter().any(|one| one["evaluations"] == 0 && one["missed"][0] == "never evaluated"));
    assert!(answer["coverage"].as_str().unwrap().contains("expressions"), "{}", answer["coverage"]);
}

#[tokio::test]
async fn pictures_show_which_states_follow_one_another() {
    let play = Play::start(&["--timeout", "60s"]);
    let crd = &play.modes().await[0];
    assert_eq!(crd["drawn"], true);
    let pictures = play.ask("/pictures", "crd", &fields(&crd["examples"][0])).await.json();
    assert_eq!(unfit("playPictures", &pictures), Vec::<String>::new());
    let found = pictures.as_array().unwrap().iter().find(|one| {
        one["title"].as_str().is_some_and(|title| title.ends_with("DataGather: status.dataGatherState"))
    });
    let picture = found.unwrap_or_else(|| panic!("{pictures:#}"));
    assert!(picture["svg"].as_str().unwrap().starts_with("<svg"), "{picture:#}");
    assert!(picture["text"].as_str().unwrap().contains("Completed"), "{picture:#}");
    // Texts with mistakes have none, and modes without states neither.
    for (mode, fields) in [("crd", json!({"crd": "a: ["})), ("expression", json!({"expression": "1"}))] {
        assert_eq!(play.ask("/pictures", mode, &fields).await.json(), json!([]), "{mode}");
    }
}

#[tokio::test]
async fn mistakes_stand_at_their_lines() {
    let play = Play::start(&[]);
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let cases: [(&str, Value, &str, u64, &str); 9] = [
        ("expression", json!({"expression": "1 +\n b"}), "expression", 2, "undeclared reference to 'b'"),
        ("expression", json!({"expression": "1", "variables": "- a"}), "variables", 1, "must be a map"),
        (
            "expression",
            json!({"expression": "1", "variables": "a: 1\n2b: 1"}),
            "variables",
            2,
            "no name of a variable",
        ),
        ("expression", json!({}), "expression", 1, "write an expression"),
        ("crd", json!({"crd": "kind: [", "new": object}), "crd", 1, ""),
        ("crd", json!({"new": format!("{object}---\n{object}")}), "new", 5, "one object is expected"),
        (
            "policy",
            json!({"new": object, "request": "user: a\noperaton: CREATE"}),
            "request",
            2,
            "no such field",
        ),
        (
            "policy",
            json!({"new": object, "request": "operation: UPDATE"}),
            "request",
            1,
            "that is there before",
        ),
        (
            "webhook",
            json!({"new": object, "webhook": object}),
            "webhook",
            2,
            "ValidatingWebhookConfiguration",
        ),
    ];
    for (mode, fields, pane, line, message) in cases {
        let answer = play.evaluate(mode, fields).await;
        let mistake = &answer["mistakes"][0];
        assert_eq!(answer["verdict"]["outcome"], "mistake", "{answer:#}");
        assert_eq!(unfit("playEvaluated", &answer), Vec::<String>::new());
        assert_eq!(
            (mistake["field"].as_str(), mistake["line"].as_u64()),
            (Some(pane), Some(line)),
            "{answer:#}"
        );
        assert!(mistake["message"].as_str().unwrap().contains(message), "{answer:#}");
    }
    // The rule of a definition that does not compile, at its line.
    let crd = play.modes().await[0]["examples"][2].clone();
    let mut given = fields(&crd);
    let broken = given["crd"].as_str().unwrap().replacen("has(self.since)", "has(self.sinc)", 1);
    let line = broken.lines().position(|line| line.contains("has(self.sinc)")).unwrap() + 1;
    given["crd"] = json!(broken);
    let mistake = &play.evaluate("crd", given).await["mistakes"][0];
    assert_eq!(
        (mistake["field"].as_str(), mistake["line"].as_u64()),
        (Some("crd"), u64::try_from(line).ok()),
        "{mistake:#}"
    );
    assert!(mistake["message"].as_str().unwrap().contains("undefined field 'sinc'"), "{mistake:#}");
}

#[tokio::test]
async fn deletions_old_objects_and_bindings_are_told_apart() {
    let play = Play::start(&[]);
    let modes = play.modes().await;
    let mut given = fields(&modes[1]["examples"][1]);
    given["old"] = std::mem::replace(&mut given["new"], json!(""));
    let deleted = play.evaluate("policy", given.clone()).await;
    assert!(deleted["verdict"]["text"].as_str().unwrap().starts_with("delete of MustGather"), "{deleted:#}");
    assert_eq!(deleted["verdict"]["outcome"], "unmatched");

    given["new"] = json!(given["old"].as_str().unwrap().replace("name: sample", "name: other"));
    let other = play.evaluate("policy", given.clone()).await;
    assert!(
        other["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note.as_str().unwrap().contains("is another one"))
    );

    let unbound = given["policy"].as_str().unwrap().split("---").next().unwrap().to_owned();
    given["policy"] = json!(unbound);
    let answer = play.evaluate("policy", given).await;
    assert_eq!(answer["verdict"]["outcome"], "unmatched", "{answer:#}");
    assert!(!answer["notes"].as_array().unwrap().is_empty(), "{answer:#}");
}

#[tokio::test]
async fn mutations_show_what_they_change() {
    let play = Play::start(&[]);
    let mutating = play.modes().await[2].clone();
    for (example, added) in [(0, "+   mustGatherTimeout: 30m"), (1, "+     team: red")] {
        let answer = play.evaluate("mutating", fields(&mutating["examples"][example])).await;
        let difference = answer["changed"]["difference"].as_array().unwrap();
        assert!(difference.contains(&json!(added)), "{answer:#}");
    }
}

#[tokio::test]
async fn what_is_too_much_is_refused_by_name() {
    let play = Play::start(&["--timeout", "1ms"]);
    let mut client = play.client().await;
    let long = "1".repeat((1 << 20) + 1);
    let too_long =
        client.post("/evaluate", json!({"mode": "expression", "fields": {"expression": long}}).to_string());
    assert_eq!(too_long.await.unwrap().code, 413);
    for (body, code, told) in [
        ("{", 400, ""),
        (r#"{"mode": "nothing"}"#, 404, "GET /modes lists them"),
        (r#"{"mode": "expression", "fields": {"crd": "a"}}"#, 422, "no field `crd`"),
        (r#"{"mode": "expression", "more": 1}"#, 422, "more"),
    ] {
        let answered = play.client().await.post("/evaluate", body).await.unwrap();
        assert_eq!(answered.code, code, "{body}: {}", answered.text());
        assert!(answered.json()["error"].as_str().unwrap().contains(told), "{body}: {}", answered.text());
        assert_eq!(unfit("playRefusal", &answered.json()), Vec::<String>::new());
    }
    // The largest definition is not even compiled in a millisecond.
    let late = play.ask("/evaluate", "crd", &fields(&play.modes().await[0]["examples"][0])).await;
    assert_eq!(late.code, 504, "{}", late.text());
    assert!(late.text().contains("--timeout"), "{}", late.text());
}

/// Webhooks could keep people from repairing them.
#[tokio::test]
async fn no_webhook_is_asked_about_webhooks() {
    let webhook = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: all}
webhooks:
- name: all.example.com
  clientConfig: {url: 'https://all.example.com/'}
  rules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Ignore
  matchConditions: [{name: of-a-pod, expression: 'object.spec.nodeName != \"a\"'}]
";
    let play = Play::start(&[]);
    let said = play.evaluate("webhook", json!({"webhook": webhook, "new": webhook})).await;
    assert_eq!(said["verdict"]["outcome"], "unmatched", "{said:#}");
    let why = "webhooks[0].rules: no webhook is asked about a ValidatingWebhookConfiguration";
    assert_eq!(said["rules"][0]["message"], why);

    // A condition that fails is passed over by this policy, and told.
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}";
    let said = play.evaluate("webhook", json!({"webhook": webhook, "new": pod})).await;
    assert_eq!(
        (&said["verdict"]["outcome"], &said["rules"][0]["verdict"]),
        (&json!("unmatched"), &json!("ignored"))
    );
    assert!(said["rules"][0]["message"].as_str().unwrap().contains("no such key: nodeName"), "{said:#}");
}

#[tokio::test]
async fn only_pages_of_this_machine_may_ask() {
    let play = Play::start(&[]);
    let own = format!("http://{}", play.address);
    let host = play.address.to_string();
    for (name, value, code) in [
        ("host", "rebound.example.com", 403),
        ("host", host.as_str(), 200),
        ("origin", "http://example.com", 403),
        ("origin", "null", 403),
    ] {
        for path in ["/", "/modes", "/play.js"] {
            let mut client = play.client().await;
            client.headers.push((name.to_owned(), value.to_owned()));
            assert_eq!(client.get(path).await.unwrap().code, code, "{name}: {value} {path}");
        }
    }
    let mut client = play.client().await;
    client.headers.extend([("host".to_owned(), host), ("origin".to_owned(), own)]);
    let answered =
        client.post("/evaluate", r#"{"mode": "expression", "fields": {"expression": "1"}}"#).await.unwrap();
    assert_eq!(answered.code, 200, "{}", answered.text());
    // No page of elsewhere can send JSON unasked, and nothing else is read.
    client.headers.push(("content-type".to_owned(), "text/plain".to_owned()));
    let answered = client.post("/evaluate", r#"{"mode": "expression"}"#).await.unwrap();
    assert_eq!(answered.code, 415, "{}", answered.text());

    for path in ["/", "/play.css", "/play.js", "/modes", "/nowhere"] {
        let answered = play.client().await.get(path).await.unwrap();
        let header =
            |name: &str| answered.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert!(header("content-security-policy").starts_with("default-src 'none';"), "{path}");
        assert!(!header("content-security-policy").contains("unsafe"), "{path}");
        assert_eq!(
            (header("x-content-type-options"), header("cache-control")),
            ("nosniff", "no-store"),
            "{path}"
        );
    }
}

/// Nobody but this machine reaches it, the port that was asked for is taken, and it stops when it is told to.
#[test]
fn it_listens_on_loopback_and_stops_when_asked() {
    let mut play = Play::start(&[]);
    assert!(play.address.ip().is_loopback());
    let port = play.address.port().to_string();
    let second = Command::new(env!("CARGO_BIN_EXE_admit")).args(["play", "--port", &port]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("choose another address with --port"));
    let id = play.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(play.child.wait().unwrap().code(), Some(0));
}
