//! Row 38: a service that sends the token back, in every answer and every spelling. Nothing of it shows in the status, in
//! events or in logs.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::runs::{Bench, uploading};
use super::upload::ingress::{Answers, Echo, FakeIngress};
use crate::support::cluster::DATAGATHERS;
use crate::support::logs;
use crate::support::reliability::Row;

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const TOKEN: &str = "canary+4711/token==with-more";
/// What must not be seen, in lower case: the word as it is, and what base64 makes of it in each of its three places.
const TOLD: [&str; 4] = ["canary", "y2fuyxj5", "jyw5hcn", "nhbmfye"];

/// What the service makes of the `Authorization` that it was sent.
const SPELLINGS: &[Echo] = &[
    |sent| sent.to_owned(),
    |sent| format!("cannot read header Authorization: {sent}"),
    |sent| sent.trim_start_matches("Bearer ").to_owned(),
    |sent| format!("{}{sent}", "x".repeat(1_010)),
    |sent| sent[.."Bearer canary+4711".len()].to_owned(),
    |sent| STANDARD.encode(sent),
    |sent| URL_SAFE_NO_PAD.encode(sent.trim_start_matches("Bearer ")),
    |sent| STANDARD.encode(sent.replace("Bearer ", "user:")),
    |sent| sent.replace('+', "%2B").replace('/', "%2f").replace('=', "%3D"),
    |sent| json!({"headers": {"authorization": [sent]}}).to_string(),
    |sent| sent.to_uppercase(),
    |sent| format!("\u{1b}[31m{sent}\r\n\u{202e}"),
];
/// The same as answers to questions of the client.
const MEANT: &[Echo] = &[
    |sent| json!({"status": sent}).to_string(),
    |sent| json!({"status": {"a": sent}}).to_string(),
    |sent| json!({"status": "processed", "requestID": sent, "report": []}).to_string(),
    |sent| json!({"status": "processed", "report": [{"total_risk": sent}]}).to_string(),
    |sent| json!({"status": "processed", "report": sent}).to_string(),
    |sent| {
        let finding = json!({"rule_fqdn": sent, "error_key": sent, "description": sent, "total_risk": 1});
        json!({"status": "processed", "requestID": "abc", "report": [finding]}).to_string()
    },
];

/// The services, and what each is for.
fn services() -> Vec<(String, Answers)> {
    let mut all = Vec::new();
    let mut add = |name: &str, answers: Answers, echo: Option<Echo>| {
        all.push((name.to_owned(), Answers { echo, ..answers }));
    };
    for spelling in SPELLINGS {
        add("refused", Answers::refuse(401), Some(*spelling));
    }
    for code in [400, 403, 413, 415, 500] {
        add("refused", Answers::refuse(code), Some(SPELLINGS[0]));
    }
    add("request id", Answers::accept(&TOKEN.replace(['+', '/', '='], "-")), None);
    add("not processed", Answers { status: vec![(500, "")], ..Answers::accept("abc") }, Some(SPELLINGS[1]));
    for code in [404, 500] {
        let quoted: Echo = |sent| json!({"status": "processed", "text": sent}).to_string();
        add("report", Answers { report: (code, String::new()), ..Answers::accept("abc") }, Some(quoted));
    }
    for meant in MEANT {
        add("meant", Answers { report: (200, String::new()), ..Answers::accept("abc") }, Some(*meant));
    }
    all
}

#[tokio::test]
async fn row_38_a_token_that_comes_back_is_shown_nowhere() {
    let mut row = Row::short(38, "tokens that a service sends back");
    let services = services();
    let all = services.len();
    for (number, (name, answers)) in services.into_iter().enumerate() {
        let logs = logs::capture();
        let reports = answers.report.0;
        let service = FakeIngress::start(answers).await;
        let bench = Bench::new();
        let settings = uploading(&bench, &service);
        fs::write(bench.dir.path().join("token"), TOKEN).unwrap();
        let controller = bench.start_with(settings);
        bench.ask("first", &json!({}));
        let over = |object: &Value| {
            let status = &object["status"];
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let known = conditions.filter(|condition| {
                condition["type"] == "AnalysisAvailable" && condition["status"] != "Unknown"
            });
            match status["dataGatherState"].as_str() {
                Some("Failed") => true,
                Some("Completed") => known.count() > 0,
                _ => false,
            }
        };
        let object = bench.cluster.until(DATAGATHERS, "first", over).await;
        bench.events(2).await;
        controller.stop().await;
        assert_eq!(service.uploads()[0].authorization, format!("Bearer {TOKEN}"), "the token was used");
        let logged = logs.take();
        assert!(logged.contains("archive written"), "logs were captured");
        let told = format!("{object}\n{:?}\n{logged}", bench.cluster.all(EVENTS));
        let hit = told.lines().find(|line| TOLD.iter().any(|part| line.to_lowercase().contains(part)));
        assert_eq!(hit, None, "{name} {number} {reports}: a secret shows");
        let raw = object.to_string().chars().filter(|c| matches!(c, '\u{1b}' | '\u{202e}')).count();
        assert_eq!((raw, object.to_string().contains("\\u001b")), (0, false), "{object}");
    }
    row.measured(json!({"services": all, "hits": 0}));
}
