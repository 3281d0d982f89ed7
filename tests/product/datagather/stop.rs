//! Gatherings under way when the controller is told to stop: what is in their status then, and what the next process makes
//! of them.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use admit::controllers::datagather::crd::{DataGather, DataGatherSpec, State};
use http::Method;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::runs::{Bench, LISTS, PODS, condition, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::running::Workplace;
use crate::support::cluster::{DATAGATHERS, PATIENCE};

#[tokio::test]
async fn a_gathering_that_is_stopped_has_failed_before_the_process_ends() {
    let bench = Bench::new();
    let controller = bench.start_held("first").await;
    bench.ask("second", &json!({}));
    bench.until_state("second", "Running").await;
    // One write loses against another writer and is made again from the newer object.
    bench.cluster.refuse_once(Method::PATCH, &format!("{DATAGATHERS}/first/status"), 409);
    controller.stop().await;
    for name in ["first", "second"] {
        let status = bench.cluster.get(DATAGATHERS, name)["status"].clone();
        assert_eq!(status["dataGatherState"], "Failed", "{status:#}");
        assert_eq!(condition(&status, "DataRecorded"), "False/RecordingFailed");
        assert!(status["conditions"].to_string().contains("was stopped"), "{status:#}");
        assert!(status["finishTime"].is_string());
    }
    assert_eq!(bench.archives(), Vec::<String>::new());
    assert_eq!(bench.cluster.count(&Method::GET, PODS), 2 * LISTS, "nothing is gathered again");
}

#[tokio::test]
async fn an_upload_that_was_taken_is_not_denied() {
    let bench = Bench::new();
    let mut answers = Answers::accept("abc");
    answers.status = vec![(404, "{}"); 2];
    let service = FakeIngress::start(answers).await;
    let mut settings = uploading(&bench, &service);
    settings.upload.as_mut().unwrap().pacing.processing_delay = Duration::from_secs(3600);
    let controller = bench.start_with(settings);
    bench.ask("first", &json!({}));
    let uploaded = |object: &Value| object["status"]["insightsRequestID"] == "abc";
    bench.cluster.until(DATAGATHERS, "first", uploaded).await;
    controller.stop().await;
    let status = bench.cluster.get(DATAGATHERS, "first")["status"].clone();
    assert_eq!(status["dataGatherState"], "Failed");
    assert_eq!(condition(&status, "DataUploaded"), "True/HttpStatus202");
    assert_eq!(condition(&status, "DataProcessed"), "False/Failure");
}

/// Writes that are never answered do not keep the process.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_holds_up_no_stop() {
    let bench = Bench::new();
    let controller = bench.start_held("first").await;
    bench.cluster.hold(&format!("{DATAGATHERS}/first/status"));
    let stopping = Instant::now();
    controller.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(10), "{:?}", stopping.elapsed());
    assert_eq!(bench.cluster.get(DATAGATHERS, "first")["status"]["dataGatherState"], "Running");
}

/// A controller that has not heard of its objects yet, for want of an API server or of their definition, can be stopped all the same.
#[tokio::test(start_paused = true)]
async fn a_controller_that_never_began_stops() {
    let bench = Bench::new();
    bench.cluster.hold(DATAGATHERS);
    let controller = bench.start();
    while bench.cluster.count(&Method::GET, DATAGATHERS) == 0 {
        tokio::task::yield_now().await;
    }
    let stopping = Instant::now();
    controller.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(10), "{:?}", stopping.elapsed());
}

/// The last write of `admit up` goes through its own API server and webhook, which therefore stop after it.
#[tokio::test(flavor = "multi_thread")]
async fn admit_up_concludes_its_gatherings_before_it_ends() {
    let place = Workplace::new();
    fs::write(place.path().join("token"), "t").unwrap();
    // Takes connections, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/upload", silent.local_addr().unwrap());
    let running = place.start_with(&[
        "--upload-url",
        &url,
        "--upload-token-file",
        "token",
        "--allow-upload-to",
        "127.0.0.1",
    ]);
    let api: Api<DataGather> = Api::all(place.client().await);
    let wanted = DataGather::new("first", DataGatherSpec::default());
    api.create(&PostParams::default(), &wanted).await.unwrap();
    let state = |object: Option<&DataGather>| object?.status.as_ref()?.data_gather_state;
    let runs = |object: Option<&DataGather>| state(object) == Some(State::Running);
    tokio::time::timeout(PATIENCE, await_condition(api, "first", runs)).await.unwrap().unwrap();
    assert!(running.terminate().success(), "{}", place.log());

    let running = place.start();
    let api: Api<DataGather> = Api::all(place.client().await);
    let status = api.get("first").await.unwrap().status.unwrap();
    assert_eq!(status.data_gather_state, Some(State::Failed));
    let told = status.conditions.iter().any(|condition| condition.message.contains("was stopped"));
    assert!(told, "the process that ran it said so, not the next one: {:#?}", status.conditions);
    assert!(running.terminate().success());
}
