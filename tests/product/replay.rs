//! The tour's requests, sent by a kube-rs client over TLS with the kubeconfig that `admit up` wrote: the tour's answers
//! hold also where no kubectl is on the PATH.

use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::repository::root;
use crate::running::Workplace;

fn sample(name: &str) -> DynamicObject {
    let text = std::fs::read_to_string(root().join("deploy/samples").join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// The server's words for a refused request.
fn refusal<T: std::fmt::Debug>(answer: Result<T, kube::Error>) -> (u16, String) {
    match answer {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("should be refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tours_requests_get_the_tours_answers() {
    let place = Workplace::new();
    let running = place.start();
    let kind = GroupVersionKind::gvk("insights.openshift.io", "v1alpha1", "DataGather");
    let api: Api<DynamicObject> =
        Api::all_with(place.client().await, &ApiResource::from_gvk_with_plural(&kind, "datagathers"));

    api.create(&PostParams::default(), &sample("datagather.yaml")).await.unwrap();
    let completed = await_condition(api.clone(), "first", |object: Option<&DynamicObject>| {
        object.is_some_and(|o| o.data.pointer("/status/dataGatherState") == Some(&"Completed".into()))
    });
    tokio::time::timeout(Duration::from_secs(60), completed).await.expect("completes").unwrap();

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let (code, message) = refusal(api.create(&dry, &sample("datagather-invalid.yaml")).await);
    assert_eq!(code, 422);
    assert!(message.contains("spec.dataPolicy: Unsupported value: \"Plain\""), "{message}");

    let merge = |status: Value| Patch::Merge(json!({"status": status}));
    let params = PatchParams::default();
    let cases = [
        (merge(json!({"dataGatherState": "Pending"})), "state cannot be changed backwards"),
        (merge(json!({"startTime": "2020-01-01T00:00:00Z"})), "startTime is immutable once set"),
        (merge(json!({"finishTime": null})), "cannot remove attributes from status"),
        (merge(json!({"insightsRequestID": "made-up"})), "insightsRequestID needs a successful upload"),
    ];
    for (patch, expected) in cases {
        let (code, message) = refusal(api.patch_status("first", &params, &patch).await);
        assert_eq!(code, 422, "{message}");
        assert!(message.contains(expected), "should say `{expected}`: {message}");
    }
    let spec = Patch::Merge(json!({"spec": {"dataPolicy": "ClearText"}}));
    let (_, message) = refusal(api.patch("first", &params, &spec).await);
    assert!(message.contains("admission webhook \"policies.admit.local\" denied the request"), "{message}");

    api.delete("first", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("first").await.unwrap().is_none());
    assert!(running.terminate().success(), "SIGTERM must end `admit up` with 0:\n{}", place.log());
}
