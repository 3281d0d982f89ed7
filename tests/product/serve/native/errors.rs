//! Expressions that ask the authorizer where the cluster does not answer: as in kube-apiserver, where an authorizer fails,
//! the check is not allowed and has an error, and the expression goes on. The failure policy is asked where it then fails.

use http::Method;
use serde_json::json;

use super::super::server::{Place, policy, review};
use crate::support::cluster::FakeCluster;
use crate::support::https::Client;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const CHECK: &str = "authorizer.group('').resource('pods').namespace('n').check('get')";

#[tokio::test(flavor = "multi_thread")]
async fn an_authorizer_that_does_not_answer_is_an_error_of_its_checks() {
    let fake = FakeCluster::new(&["/apis/apiextensions.k8s.io/v1/customresourcedefinitions"]);
    let place = Place::new();
    let says = |name: &str, expression: &str, message: &str| {
        let text = policy(name, expression)
            .replace(&format!("message: {name} says no"), &format!("messageExpression: \"{message}\""));
        place.write(&format!("policies/{name}.yaml"), &text);
        let ignoring = text
            .replacen("spec:\n", "spec:\n  failurePolicy: Ignore\n", 1)
            .replace(&format!("{{name: {name}}}"), &format!("{{name: {name}-ignore}}"))
            .replace(&format!("policyName: {name},"), &format!("policyName: {name}-ignore,"));
        place.write(&format!("policies/{name}-ignore.yaml"), &ignoring);
    };
    says("allowed", &format!("{CHECK}.allowed()"), "'no right'");
    says("errored", &format!("!{CHECK}.errored()"), "'errored'");
    says("silent", &format!("{CHECK}.error() == ''"), "'an error'");
    says("late", &format!("!{CHECK}.error().contains('in time')"), "'late'");
    // An error of the expression itself, which only the one that ignores failures survives.
    says("errs", &format!("!{CHECK}.errored() || object.data.none == 'x'"), "'never'");
    place.write("kubeconfig", &fake.serve().await);
    let serving = place.start(&["--policies", "policies", "--kubeconfig", "kubeconfig", "--timeout", "30"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let mut verdicts = async |names: &[&str]| {
        let mut all = Vec::new();
        for name in names {
            let answered = client.post(&format!("/validate/{name}"), review("u", &json!({"v": "x"}))).await;
            let response = answered.unwrap().json()["response"].clone();
            let message = response["status"]["message"].as_str().unwrap_or_default();
            all.push((response["allowed"] == true, message.rsplit(": ").next().unwrap().to_owned()));
        }
        all
    };
    let no = |text: &str| (false, text.to_owned());
    let yes = || (true, String::new());
    let names =
        ["allowed", "allowed-ignore", "errored", "errored-ignore", "silent", "silent-ignore", "errs-ignore"];
    let refused =
        [no("no right"), no("no right"), no("errored"), no("errored"), no("an error"), no("an error"), yes()];

    // Nobody there who could be asked.
    assert_eq!(verdicts(&names).await, refused);
    assert_eq!(verdicts(&["errs"]).await, [no("none")]);
    // An answer that is a failure.
    let asked = fake.count(&Method::POST, REVIEWS);
    assert!(asked >= names.len(), "the cluster is asked: {asked}");
    for _ in 0..2 {
        fake.refuse_once(Method::POST, REVIEWS, 503);
    }
    assert_eq!(verdicts(&["errored", "errored-ignore"]).await, [no("errored"), no("errored")]);
    // No answer at all.
    fake.hold(REVIEWS);
    assert_eq!(verdicts(&["late", "late-ignore"]).await, [no("late"), no("late")]);
    fake.release(REVIEWS);
    let (_, metrics) = serving.observed("/metrics").await;
    assert!(metrics.contains("admit_panics_total 0\n"), "{metrics}");
    assert!(!serving.log().contains("panicked"), "{}", serving.log());
    assert!(serving.terminate().success());
}
