//! A conversion webhook of Cats, well behaved or as a test wants it, and a server with their definition.
//!
//! A Cat has `spec.fullName` in v1 and `spec.first` and `spec.last` in v2; legs are replicas in both.

use std::sync::{Arc, Mutex};

use admit_apiserver::Server;
use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post as route_post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::IsCa;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::DEFINITIONS;
use crate::harness::post;
use crate::webhook::serve_router;

/// What becomes of a proper answer.
pub(super) type Twist = fn(Value) -> Response;

#[derive(Clone, Default)]
pub(super) struct Hook {
    asked: Arc<Mutex<Vec<Value>>>,
    twist: Arc<Mutex<Option<Twist>>>,
    is_silent: Arc<Mutex<bool>>,
    pub(super) came: Arc<Notify>,
}

impl Hook {
    pub(super) fn twists(&self, twist: Twist) {
        *self.twist.lock().unwrap() = Some(twist);
    }

    pub(super) fn is_silent(&self, silent: bool) {
        *self.is_silent.lock().unwrap() = silent;
    }

    /// The questions since the last time, as (desired version, names).
    pub(super) fn asked(&self) -> Vec<(String, Vec<String>)> {
        let reviews = std::mem::take(&mut *self.asked.lock().unwrap());
        let told = reviews.iter().map(|review| {
            let objects = review["request"]["objects"].as_array().unwrap().iter();
            let names = objects.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
            let desired = review["request"]["desiredAPIVersion"].as_str().unwrap();
            (desired.trim_start_matches("example.com/").to_owned(), names.collect())
        });
        told.collect()
    }

    pub(super) fn questions(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

async fn answer(State(hook): State<Hook>, Json(review): Json<Value>) -> Response {
    hook.asked.lock().unwrap().push(review.clone());
    hook.came.notify_one();
    if *hook.is_silent.lock().unwrap() {
        std::future::pending::<()>().await;
    }
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap().iter();
    let converted: Vec<Value> = objects.map(|object| converted(object, desired)).collect();
    let response =
        json!({"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}});
    let answer =
        json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response});
    let twist = *hook.twist.lock().unwrap();
    twist
        .map_or_else(|| (StatusCode::OK, Json(answer.clone())).into_response(), |twist| twist(answer.clone()))
}

pub(super) fn converted(object: &Value, desired: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = desired.into();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return object };
    if desired.ends_with("/v2") {
        if let Some(Value::String(name)) = spec.remove("fullName") {
            let (first, last) = name.split_once(' ').unwrap_or((&name, ""));
            spec.insert("first".to_owned(), first.into());
            spec.insert("last".to_owned(), last.into());
        }
    } else {
        let mut part = |name: &str| spec.remove(name).and_then(|part| part.as_str().map(str::to_owned));
        let (first, last) = (part("first").unwrap_or_default(), part("last").unwrap_or_default());
        if !first.is_empty() || !last.is_empty() {
            spec.insert("fullName".to_owned(), format!("{first} {last}").into());
        }
    }
    object
}

/// Cats, stored in `storage`, converted by `client`.
pub(super) fn definition(storage: &str, client: &Value) -> Value {
    let version = |name: &str, fields: &[&str]| {
        let text = json!({"type": "string"});
        let mut spec: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), text.clone())).collect();
        spec.insert("legs".to_owned(), json!({"type": "integer"}));
        spec.insert(format!("of{name}"), json!({"type": "string", "default": name}));
        let status = json!({"type": "object", "properties": {"legs": {"type": "integer"}, "mood": {"type": "string"}}});
        let properties = json!({"spec": {"type": "object", "properties": spec}, "status": status});
        json!({
            "name": name, "served": true, "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.legs", "statusReplicasPath": ".status.legs"}},
            "selectableFields": [{"jsonPath": format!(".spec.{}", fields[0])}],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "cats", "singular": "cat", "kind": "Cat", "listKind": "CatList"},
            "versions": [version("v1", &["fullName"]), version("v2", &["first", "last"])],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1", "v1beta1"], "clientConfig": client},
            },
        },
    })
}

/// A server that stores Cats in v1, the webhook that converts them, and its `clientConfig`.
pub(super) async fn cattery() -> (Server, Hook, Value) {
    let hook = Hook::default();
    let router = Router::new().route("/convert", route_post(answer)).with_state(hook.clone());
    let (address, pem) = serve_router(router, IsCa::NoCa).await;
    let client = json!({"url": format!("https://{address}/convert"), "caBundle": STANDARD.encode(pem)});
    let server = Server::builder().build().await.unwrap();
    let made = post(&server, DEFINITIONS, &definition("v1", &client)).await;
    assert_eq!(made.status, 201, "{made:?}");
    (server, hook, client)
}
