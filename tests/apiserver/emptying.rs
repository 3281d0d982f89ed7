//! What it takes to remove many objects: work in proportion to their number, and a disk that waits for none of them alone.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use admit_apiserver::Server;
use admit_apiserver::store::{Backend, BackendError, Image, Key, Record, Store};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{delete, get, post};

/// Long enough for a busy machine; the tests end as soon as they may.
const PATIENCE: Duration = Duration::from_secs(60);
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn map(n: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{n}")}})
}

async fn full_namespace(server: &Server, objects: usize) {
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}});
    assert_eq!(post(server, "/api/v1/namespaces", &made).await.status, 201);
    for n in 0..objects {
        assert_eq!(post(server, "/api/v1/namespaces/many/configmaps", &map(n)).await.status, 201);
    }
}

/// How many objects were looked at and how many changes were made, to empty a namespace of so many.
async fn emptied(objects: usize) -> (u64, u64) {
    let server = Server::builder().build().await.unwrap();
    full_namespace(&server, objects).await;
    server.sweep().await.unwrap();
    delete(&server, "/api/v1/namespaces/many", None).await;
    let (looked_at, revision) = (server.store().looked_at(), server.store().revision());
    server.sweep().await.unwrap();
    assert_eq!(get(&server, "/api/v1/namespaces/many").await.status, 404);
    (server.store().looked_at() - looked_at, server.store().revision() - revision)
}

#[tokio::test]
async fn a_namespace_is_emptied_in_proportion_to_what_it_holds() {
    let ((looked_at, changes), (more_looked_at, more_changes)) = (emptied(50).await, emptied(350).await);
    assert_eq!(more_changes - changes, 300);
    // Once by who looks for what has no owner, and once by who empties namespaces.
    assert!(
        more_looked_at - looked_at <= 2 * 300,
        "{looked_at} objects were looked at, then {more_looked_at}"
    );
}

/// How many objects were looked at to end a definition with so many.
async fn ended(objects: usize) -> u64 {
    let server = Server::builder().build().await.unwrap();
    assert_eq!(post(&server, DEFINITIONS, &definition()).await.status, 201);
    for n in 0..objects {
        let thing =
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": format!("t{n}")}});
        assert_eq!(post(&server, "/apis/example.com/v1/things", &thing).await.status, 201);
    }
    let looked_at = server.store().looked_at();
    delete(&server, &format!("{DEFINITIONS}/things.example.com"), None).await;
    assert_eq!(get(&server, &format!("{DEFINITIONS}/things.example.com")).await.status, 404);
    server.store().looked_at() - looked_at
}

#[tokio::test]
async fn a_definition_ends_in_proportion_to_its_objects() {
    let (few, many) = (ended(20).await, ended(220).await);
    assert!(many - few <= 2 * 200, "{few} objects were looked at, then {many}");
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    testing::definition("things.example.com", "Thing", "Cluster", &schema)
}

/// A disk that stores nothing while it is held up.
#[derive(Clone, Default)]
struct Slow(Arc<(Mutex<bool>, Condvar)>);

impl Slow {
    fn hold_up(&self, held: bool) {
        *self.0.0.lock().unwrap() = held;
        self.0.1.notify_all();
    }
}

impl Backend for Slow {
    fn load(&self) -> Result<Image, BackendError> {
        Ok(Image::default())
    }

    fn append(&mut self, _: &[Record]) -> Result<(), BackendError> {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |held| *held).unwrap());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_one_change_is_stored_the_next_are_made() {
    let disk = Slow::default();
    let store = Store::open(Box::new(disk.clone())).unwrap();
    let server = Server::builder().store(store.clone()).build().await.unwrap();
    full_namespace(&server, 100).await;
    delete(&server, "/api/v1/namespaces/many", None).await;
    assert!(store.get(&key(0)).is_some() && store.get(&key(99)).is_some());
    disk.hold_up(true);
    let sweeping = server.clone();
    let sweep = tokio::spawn(async move { sweeping.sweep().await });
    let is_left = |n: &usize| store.latest(&key(*n)).is_some();
    let waited = timeout(PATIENCE, async {
        while (0..100).filter(is_left).count() > 50 {
            tokio::task::yield_now().await;
        }
    });
    let outcome = waited.await;
    disk.hold_up(false);
    outcome.expect("each object waits for the disk by itself");
    sweep.await.unwrap().unwrap();
    assert_eq!(get(&server, "/api/v1/namespaces/many").await.status, 404);
}

fn key(n: usize) -> Key {
    Key { resource: "configmaps".into(), namespace: "many".to_owned(), name: format!("m{n}") }
}
