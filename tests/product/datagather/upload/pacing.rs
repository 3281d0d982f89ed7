//! Retries and waits, measured on tokio's paused clock against a transport without a network.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit::gather::upload::{
    Body, HealthCheck, ProcessingError, ReportError, Transport, TransportError, UploadError,
};
use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use tower::util::BoxCloneSyncService;

use super::{CANARY, Files, NOW};

/// An answer of the service: a code and a body, or none.
type Canned = Result<(u16, &'static str), TransportError>;

const URL: &str = "https://service.example/api/ingress/v1/upload";
const LOST: Canned = Err(TransportError::Timeout(Duration::from_secs(1)));

/// Paths asked for and sizes of the bodies sent.
type Asked = Arc<Mutex<Vec<(String, usize)>>>;

/// A transport that gives `answers` in turn and remembers paths and body sizes.
fn transport(answers: Vec<Canned>) -> (Transport, Asked) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, answers) = (Arc::clone(&asked), Arc::new(answers));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
        async move {
            let (head, body) = request.into_parts();
            let size = body.collect().await.unwrap().to_bytes().len();
            let turn = {
                let mut seen = seen.lock().unwrap();
                seen.push((head.uri.path().to_owned(), size));
                seen.len() - 1
            };
            let (code, body) = answers[turn.min(answers.len() - 1)].clone()?;
            let response = Response::builder().status(code).header("x-rh-insights-request-id", "abc");
            Ok(response.body(Bytes::from_static(body.as_bytes())).unwrap())
        }
    });
    (BoxCloneSyncService::new(service), asked)
}

#[tokio::test(start_paused = true)]
async fn dg_08_01_a_passing_failure_is_tried_four_times_with_the_whole_form() {
    let files = Files::new(CANARY);
    let (transport, asked) = transport(vec![Ok((503, "")), LOST, Ok((500, "")), Ok((202, ""))]);
    let mut client = files.client(transport, URL);
    client.pacing.upload_attempts = 4;
    let started = tokio::time::Instant::now();
    assert_eq!(client.upload(&files.path("archive"), NOW).await.unwrap().code, 202);
    assert_eq!(started.elapsed().as_secs(), (30 + 60 + 120) * 60);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    assert!(
        asked.iter().all(|(_, size)| *size == asked[0].1 && *size > 100),
        "each attempt sends the whole form"
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_end_and_a_refusal_is_not_repeated() {
    let files = Files::new(CANARY);
    for (answer, attempts) in [(LOST, 4), (Ok((401, "no")), 1), (Ok((413, "big")), 1)] {
        let (transport, asked) = transport(vec![answer]);
        let mut client = files.client(transport, URL);
        client.pacing.upload_attempts = 4;
        assert!(client.upload(&files.path("archive"), NOW).await.is_err());
        assert_eq!(asked.lock().unwrap().len(), attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn processing_is_asked_after_a_minute_and_each_minute() {
    let unknown = Ok((404, r#"{"status":"Request ID not found for given org_id and cluster_id"}"#));
    let done = Ok((200, r#"{"cluster":"c-1","requestID":"abc","status":"processed"}"#));
    let (transport, asked) = transport(vec![unknown.clone(), unknown, done]);
    let files = Files::new(CANARY);
    let started = tokio::time::Instant::now();
    files.client(transport, URL).await_processed("abc").await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 180);
    let path = "/api/insights-results-aggregator/v2/cluster/c-1/request/abc/status";
    assert!(asked.lock().unwrap().iter().all(|(asked, _)| asked == path));
}

#[tokio::test(start_paused = true)]
async fn each_way_of_not_being_processed_has_a_budget_of_three() {
    let files = Files::new(CANARY);
    let waiting: Canned = Ok((200, r#"{"status":"analyzing"}"#));
    let missing: Canned = Ok((404, "{}"));
    for (answers, questions) in [
        (vec![missing.clone()], 4),
        (vec![waiting.clone()], 4),
        (vec![LOST], 4),
        (vec![missing.clone(), waiting.clone(), LOST, missing.clone(), waiting, LOST, missing], 8),
    ] {
        let (transport, asked) = transport(answers);
        assert!(files.client(transport, URL).await_processed("abc").await.is_err());
        assert_eq!(asked.lock().unwrap().len(), questions);
    }
    let (transport, _) = transport(vec![Ok((404, r#"{"status":"unknown"}"#))]);
    let error = files.client(transport, URL).await_processed("abc").await.unwrap_err();
    assert!(matches!(error, ProcessingError::Status { code: 404, .. }), "{error}");
}

#[tokio::test]
async fn a_report_is_read_and_its_links_are_encoded() {
    let files = Files::new(CANARY);
    let body = r#"{"cluster":"c-1","requestID":"abc","status":"processed","report":[
        {"rule_fqdn":"ccx.rules.a","error_key":"KEY ONE","description":"something is wrong","total_risk":3}]}"#;
    let (transport, asked) = transport(vec![Ok((200, body))]);
    let report = files.client(transport, URL).report("abc").await.unwrap();
    assert_eq!(report.request_id, "abc");
    let uri = "https://service.example/api/insights-results-aggregator/v2/cluster/c-1/request/abc/report";
    assert_eq!(report.uri.as_deref(), Some(uri));
    assert_eq!(
        report.checks,
        [HealthCheck {
            description: "something is wrong".to_owned(),
            total_risk: 3,
            advisor_uri: "https://console.example/advisor/clusters/c-1?first=ccx.rules.a%7CKEY%20ONE"
                .to_owned(),
        }]
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_report_without_findings_and_no_report() {
    let files = Files::new(CANARY);
    let (empty, _) = transport(vec![Ok((200, r#"{"requestID":"abc"}"#))]);
    assert_eq!(files.client(empty, URL).report("abc").await.unwrap().checks, []);
    let (missing, _) = transport(vec![Ok((404, "{}"))]);
    assert!(matches!(files.client(missing, URL).report("abc").await, Err(ReportError::NotFound(_))));
    let (odd, _) = transport(vec![Ok((200, "<html>"))]);
    assert!(matches!(files.client(odd, URL).report("abc").await, Err(ReportError::Undecodable(_))));
}

#[tokio::test]
async fn a_token_that_cannot_be_read_is_named_by_its_file_only() {
    let files = Files::new("one\ntwo");
    let (transport, asked) = transport(vec![Ok((202, ""))]);
    let client = files.client(transport, URL);
    assert!(matches!(client.upload(&files.path("archive"), NOW).await, Err(UploadError::Token(_))));
    std::fs::remove_file(files.path("token")).unwrap();
    let error = client.upload(&files.path("archive"), NOW).await.unwrap_err().to_string();
    assert!(error.contains("token"), "{error}");
    assert!(asked.lock().unwrap().is_empty());
}
