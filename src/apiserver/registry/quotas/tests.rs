//! Tests the order of counts and charges, and that a count corrects charges whose write failed.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures::poll;
use serde_json::json;

use super::*;
use crate::Server;

async fn server() -> Server {
    let server = Server::builder().build().await.unwrap();
    server.registry().quotas.counted.store(true, Ordering::Release);
    server
}

/// Returns a namespace with another ledger.
fn other_than(quotas: &Quotas, namespace: &str) -> String {
    let ledger = quotas.ledgers.of(namespace);
    let mut names = (0..1_000).map(|at| format!("n{at}"));
    names.find(|name| !std::ptr::eq(quotas.ledgers.of(name), ledger)).unwrap()
}

fn call(registry: &Registry, plural: &str, namespace: &str) -> Call {
    let served = registry.served();
    let own = registry.own_call(served.table.find("", "v1", plural).unwrap(), namespace);
    Call { admitted: false, ..own }
}

async fn limit(registry: &Registry, namespace: &str, hard: &Value) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": namespace}, "spec": {"hard": hard}});
    let call = call(registry, QUOTAS, namespace).admitted();
    registry.create(&call, quota, &WriteOptions::own()).await.unwrap();
    registry.count_quotas().await;
}

#[tokio::test]
async fn a_count_keeps_writers_of_other_namespaces_from_nothing() {
    let server = server().await;
    let registry = server.registry();
    let other = other_than(&registry.quotas, "large");
    limit(registry, "large", &json!({"secrets": "1"})).await;
    let map = json!({"metadata": {"name": "m"}});
    let _closed = registry.quotas.ledgers.of("large").close().await;
    let maps = [call(registry, "configmaps", "large"), call(registry, "configmaps", &other)];
    let mut charges = maps.iter().map(|call| Box::pin(registry.charge(call, &map, None, false)));
    let (mut held, mut free) = (charges.next().unwrap(), charges.next().unwrap());
    assert!(matches!(poll!(&mut free), Poll::Ready(Ok(Some(_)))));
    assert!(poll!(&mut held).is_pending());
}

#[tokio::test]
async fn writers_that_no_quota_concerns_do_not_wait_for_each_other() {
    let server = server().await;
    let registry = server.registry();
    limit(registry, "default", &json!({"secrets": "1"})).await;
    let _turn = registry.quotas.ledgers.of("default").turn().await;
    let object = json!({"metadata": {"name": "m"}});
    let (maps, secrets) = (call(registry, "configmaps", "default"), call(registry, "secrets", "default"));
    let (mut map, mut secret) = (
        pin!(registry.charge(&maps, &object, None, false)),
        pin!(registry.charge(&secrets, &object, None, false)),
    );
    assert!(matches!(poll!(&mut map), Poll::Ready(Ok(Some(_)))));
    assert!(poll!(&mut secret).is_pending());
}

#[tokio::test]
async fn who_is_refused_has_the_namespace_counted_now_and_then_only() {
    let server = server().await;
    let registry = server.registry();
    limit(registry, "default", &json!({"secrets": "0"})).await;
    let ledger = registry.quotas.ledgers.of("default");
    registry.quotas.mark("default");
    // As after a count that has taken an hour.
    ledger.rest(Duration::from_secs(3600));
    assert!(!registry.count_at_once("default", ledger).await);
    ledger.rest(Duration::ZERO);
    assert!(registry.count_at_once("default", ledger).await);
    // Nothing was let go since.
    assert!(!registry.count_at_once("default", ledger).await);
}

#[tokio::test]
async fn a_count_that_is_given_up_is_made_later() {
    let server = server().await;
    let registry = server.registry();
    limit(registry, "default", &json!({"secrets": "0"})).await;
    registry.quotas.mark("default");
    let ledger = registry.quotas.ledgers.of("default");
    ledger.rest(Duration::ZERO);
    {
        let _entry = ledger.enter().await;
        let mut count = pin!(registry.count_at_once("default", ledger));
        assert!(poll!(&mut count).is_pending());
        assert!(registry.quotas.behind().is_empty());
    }
    assert!(registry.quotas.behind().contains("default"));
}
