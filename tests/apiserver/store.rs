//! The store by itself: revisions, snapshots, history and its end.

use admit_apiserver::store::{EventKind, Expect, Key, Packed, Range, Store, StoreError};
use serde_json::{Value, json};

fn key(name: &str) -> Key {
    Key { resource: "things".into(), namespace: "here".to_owned(), name: name.to_owned() }
}

fn thing(name: &str, n: u64) -> Value {
    json!({"metadata": {"name": name, "namespace": "here"}, "n": n})
}

fn name(object: &Packed) -> String {
    object.values()["metadata"]["name"].as_str().unwrap().to_owned()
}

fn number(object: &Packed) -> Value {
    object.values()["n"].clone()
}

#[tokio::test]
async fn a_writer_states_what_it_replaces() {
    let store = Store::in_memory();
    let first = store.put(&key("a"), Expect::Absent, thing("a", 1)).await.unwrap();
    assert_eq!(first.object["metadata"]["resourceVersion"], first.revision.to_string());
    let taken = store.put(&key("a"), Expect::Absent, thing("a", 2)).await;
    assert!(matches!(taken, Err(StoreError::Conflict(Some(at))) if at == first.revision));
    let second = store.put(&key("a"), Expect::Revision(first.revision), thing("a", 2)).await.unwrap();
    assert!(second.revision > first.revision);
    let stale = store.delete(&key("a"), first.revision, thing("a", 2)).await;
    assert!(matches!(stale, Err(StoreError::Conflict(Some(at))) if at == second.revision));
    store.delete(&key("a"), second.revision, thing("a", 2)).await.unwrap();
    assert!(store.get(&key("a")).is_none());
}

#[tokio::test]
async fn a_list_can_be_shown_as_it_was_until_it_is_compacted() {
    let store = Store::in_memory();
    for name in ["a", "b", "c"] {
        store.put(&key(name), Expect::Absent, thing(name, 1)).await.unwrap();
    }
    let then = store.revision();
    let b = store.get(&key("b")).unwrap();
    store.delete(&key("b"), b.revision, thing("b", 1)).await.unwrap();
    store.put(&key("d"), Expect::Absent, thing("d", 1)).await.unwrap();
    let names = |at: Option<u64>| -> Result<Vec<String>, StoreError> {
        let page = store.list("things", Range { at, ..Range::default() }, 0, &mut |_| true)?;
        Ok(page
            .items
            .iter()
            .map(|item| item.object.values()["metadata"]["name"].as_str().unwrap().to_owned())
            .collect())
    };
    assert_eq!(names(None).unwrap(), ["a", "c", "d"]);
    assert_eq!(names(Some(then)).unwrap(), ["a", "b", "c"]);
    store.compact(store.revision());
    assert!(matches!(names(Some(then)), Err(StoreError::Compacted { .. })));
    assert_eq!(names(None).unwrap(), ["a", "c", "d"]);
}

/// A client that is cut off again and again while history is compacted ends with the truth.
#[tokio::test]
async fn a_watcher_that_is_cut_and_comes_back_sees_the_truth() {
    let store = Store::in_memory();
    let mut seen = std::collections::BTreeMap::new();
    let mut at = 0;
    let mut relists = 0;
    for round in 0..200_u64 {
        for n in 0..20_u64 {
            let name = format!("t{}", (round * 7 + n * 3) % 50);
            match store.get(&key(&name)) {
                None => store.put(&key(&name), Expect::Absent, thing(&name, round)).await.unwrap().revision,
                Some(old) if (round + n) % 5 == 0 => {
                    store.delete(&key(&name), old.revision, thing(&name, round)).await.unwrap().revision
                }
                Some(old) => {
                    let put =
                        store.put(&key(&name), Expect::Revision(old.revision), thing(&name, round)).await;
                    put.unwrap().revision
                }
            };
        }
        if round % 9 == 0 {
            store.compact(store.revision() - 10);
        }
        // Most connections read some events and are cut; what they did not read, the next one does.
        if round % 3 != 0 {
            continue;
        }
        match store.watch("things", at) {
            Ok(mut watch) => {
                for event in watch.drain().unwrap() {
                    let name = name(&event.object);
                    match event.kind {
                        EventKind::Deleted => assert!(seen.remove(&name).is_some(), "{name} was not there"),
                        EventKind::Added => {
                            assert!(seen.insert(name, number(&event.object)).is_none())
                        }
                        EventKind::Modified => {
                            assert!(seen.insert(name, number(&event.object)).is_some())
                        }
                    }
                }
                at = watch.seen();
            }
            Err(StoreError::Compacted { .. }) => {
                relists += 1;
                let page = store.list("things", Range::default(), 0, &mut |_| true).unwrap();
                let pairs = page.items.iter().map(|item| (name(&item.object), number(&item.object)));
                seen = pairs.collect();
                at = page.revision;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(relists > 0, "compaction never hit a watcher");
    let mut watch = store.watch("things", at).unwrap();
    for event in watch.drain().unwrap() {
        let name = name(&event.object);
        if event.kind == EventKind::Deleted {
            seen.remove(&name);
        } else {
            seen.insert(name, number(&event.object));
        }
    }
    let page = store.list("things", Range::default(), 0, &mut |_| true).unwrap();
    let truth: std::collections::BTreeMap<String, Value> =
        page.items.iter().map(|item| (name(&item.object), number(&item.object))).collect();
    assert_eq!(seen, truth);
}
