//! Parses the policy exceptions of the cluster whenever they change, so that decisions only look them up.
//!
//! An invalid exception has no effect, even if an earlier version of it had. If there are more exceptions than the limit, the oldest
//! active ones are used, so that new exceptions never displace others.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use admit_apimachinery::pointer::text;
use admit_policy::{Exceptions, HostError, PolicyException};
use kube::Client;
use kube::api::{Api, ApiResource};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::collection::Collection;
use super::follow::Followed;

/// The most exceptions in total, and of one namespace.
const MOST: usize = 2_000;
const MOST_OF_NAMESPACE: usize = 200;

/// How many exceptions there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionCounts {
    pub in_force: usize,
    pub ended: usize,
    /// Exceptions that cannot be parsed, which is possible with a foreign CRD.
    pub malformed: usize,
    /// Exceptions above the limit.
    pub left_out: usize,
}

/// The objects, and the exceptions parsed from them.
pub(super) struct Stored {
    of_namespaces: Arc<Collection>,
    of_cluster: Arc<Collection>,
    changed: Arc<Notify>,
    /// None until exceptions are requested.
    read: RwLock<Option<Read>>,
}

/// The result of parsing the objects.
#[derive(Clone, Debug, Default)]
struct Read {
    /// None before the first list.
    exceptions: Option<Arc<Exceptions>>,
    left_out: usize,
    /// The errors, by namespace and name.
    mistakes: BTreeMap<(String, String), String>,
}

impl Stored {
    pub(super) fn new() -> Self {
        let collection = |name| Arc::new(Collection::new(name));
        Self {
            of_namespaces: collection("policyexceptions"),
            of_cluster: collection("clusterpolicyexceptions"),
            changed: Arc::new(Notify::new()),
            read: RwLock::default(),
        }
    }

    /// Returns the exceptions; None unless they are requested.
    ///
    /// # Errors
    /// When they were never listed, or their watch has been broken for too long.
    pub(super) fn known(&self) -> Result<Option<Arc<Exceptions>>, HostError> {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let Some(read) = &*read else { return Ok(None) };
        match (self.unheard(), &read.exceptions) {
            (Some(trouble), _) => Err(trouble),
            (None, Some(known)) => Ok(Some(Arc::clone(known))),
            (None, None) => Err(unread()),
        }
    }

    /// Returns why the exceptions are not reliable, if so, for example before they are requested.
    pub(super) fn trouble(&self) -> Option<HostError> {
        self.known().map_or_else(Some, |known| known.is_none().then(unread))
    }

    fn unheard(&self) -> Option<HostError> {
        [&self.of_namespaces, &self.of_cluster].into_iter().find_map(|collection| collection.trouble())
    }

    /// Returns how many exceptions there are at `now`.
    pub(super) fn counts(&self, now: SystemTime) -> ExceptionCounts {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let Some(Read { exceptions: Some(known), left_out, mistakes }) = &*read else {
            return ExceptionCounts::default();
        };
        let (ended, in_force): (Vec<_>, Vec<_>) = known.iter().partition(|known| known.has_ended(now));
        ExceptionCounts {
            in_force: in_force.len(),
            ended: ended.len(),
            malformed: mistakes.len(),
            left_out: *left_out,
        }
    }

    /// Watches both kinds until `shutdown`, if the cluster serves them; checks that again when `defined` reports changed CRDs.
    pub(super) async fn follow(
        &self,
        client: &Client,
        defined: &watch::Sender<()>,
        shutdown: CancellationToken,
    ) {
        self.write(Read::default());
        let run = |kind: &str, plural: &str, into: &Arc<Collection>| {
            let resource = ApiResource {
                group: "policies.admit.dev".to_owned(),
                version: "v1".to_owned(),
                api_version: "policies.admit.dev/v1".to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            };
            let api = Api::all_with(client.clone(), &resource);
            let followed =
                Followed { api, resource, into: Arc::clone(into), changed: Arc::clone(&self.changed) };
            Followed::run_if_served(vec![followed], defined.subscribe(), shutdown.clone())
        };
        let reading = async {
            loop {
                self.changed.notified().await;
                self.look();
            }
        };
        tokio::join!(
            run("PolicyException", "policyexceptions", &self.of_namespaces),
            run("ClusterPolicyException", "clusterpolicyexceptions", &self.of_cluster),
            shutdown.run_until_cancelled(reading),
        );
    }

    /// Parses the current objects.
    fn look(&self) {
        let (Ok(mut objects), Ok(of_cluster)) = (self.of_namespaces.all(), self.of_cluster.all()) else {
            return;
        };
        objects.extend(of_cluster);
        let read = read(&objects, SystemTime::now());
        let before = self.write(read.clone()).unwrap_or_default();
        for ((namespace, name), error) in &read.mistakes {
            if before.mistakes.get(&(namespace.clone(), name.clone())) != Some(error) {
                warn!(
                    namespace,
                    name, error, "an exception of the cluster cannot be read and lets nothing through"
                );
            }
        }
        if read.left_out > 0 && read.left_out != before.left_out {
            warn!(
                left_out = read.left_out,
                "of more than {MOST_OF_NAMESPACE} exceptions of a namespace, or {MOST} altogether, the newest let nothing through"
            );
        }
    }

    fn write(&self, read: Read) -> Option<Read> {
        self.read.write().unwrap_or_else(PoisonError::into_inner).replace(read)
    }
}

fn unread() -> HostError {
    HostError("exceptions: not read yet".to_owned())
}

/// Parses the objects up to the limits.
fn read(objects: &[Arc<Value>], now: SystemTime) -> Read {
    let mut mistakes = BTreeMap::new();
    let mut found: Vec<(bool, &str, &str, PolicyException)> = Vec::with_capacity(objects.len());
    for object in objects {
        let namespace = text(object, "/metadata/namespace");
        match PolicyException::compile(object) {
            Ok(exception) => {
                let made = text(object, "/metadata/creationTimestamp");
                found.push((exception.has_ended(now), made, namespace, exception));
            }
            Err(errors) => {
                let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
                let name = text(object, "/metadata/name").to_owned();
                mistakes.insert((namespace.to_owned(), name), lines.join("; "));
            }
        }
    }
    found.sort_by(|(a_ended, a_made, _, a), (b_ended, b_made, _, b)| {
        (a_ended, a_made, a.name()).cmp(&(b_ended, b_made, b.name()))
    });
    let mut by_namespace: HashMap<&str, usize> = HashMap::new();
    let (mut kept, mut left_out) = (Vec::new(), 0_usize);
    for (_, _, namespace, exception) in found {
        let of_namespace = by_namespace.entry(namespace).or_default();
        // Exceptions without a namespace belong to administrators, so they have no limit of their own.
        let is_full = *of_namespace >= MOST_OF_NAMESPACE && !namespace.is_empty();
        if is_full || kept.len() >= MOST {
            left_out = left_out.saturating_add(1);
            continue;
        }
        *of_namespace = of_namespace.saturating_add(1);
        kept.push(exception);
    }
    Read { exceptions: Some(Arc::new(kept.into_iter().collect())), left_out, mistakes }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    fn object(namespace: &str, number: usize, until: &str) -> Arc<Value> {
        let kind = if namespace.is_empty() { "ClusterPolicyException" } else { "PolicyException" };
        let mut metadata = json!({
            "name": format!("e{number:04}"), "creationTimestamp": format!("2026-01-01T00:{:02}:00Z", number % 60),
        });
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        Arc::new(json!({
            "apiVersion": "policies.admit.dev/v1", "kind": kind, "metadata": metadata,
            "spec": {"policies": ["p"], "until": until, "reason": "r"},
        }))
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
    }

    #[test]
    fn of_too_many_the_oldest_that_have_not_ended_are_kept() {
        let mut objects: Vec<_> =
            (0..MOST_OF_NAMESPACE + 1).map(|at| object("a", at, "2001-01-01")).collect();
        objects.extend((0..3).map(|number| object("a", number + 1_000, "2999-01-01")));
        objects.push(object("b", 0, "2999-01-01"));
        let Read { exceptions, left_out, mistakes } = read(&objects, now());
        let exceptions = exceptions.unwrap();
        assert_eq!((exceptions.iter().count(), left_out, mistakes.len()), (MOST_OF_NAMESPACE + 1, 4, 0));
        assert_eq!(exceptions.iter().filter(|known| !known.has_ended(now())).count(), 4);

        let many: Vec<_> = (0..MOST + 5).map(|number| object("", number, "2999-01-01")).collect();
        let Read { exceptions, left_out, .. } = read(&many, now());
        let exceptions = exceptions.unwrap();
        assert_eq!((exceptions.iter().count(), left_out), (MOST, 5));
        // Those with the last minute are the newest.
        let newest = |name: &str| name[1..].parse::<usize>().unwrap() % 60 == 59;
        assert_eq!(exceptions.iter().filter(|known| newest(known.name())).count(), MOST / 60 - 5);
    }

    #[test]
    fn what_is_not_known_is_not_in_force() {
        let stored = Stored::new();
        assert!(stored.known().unwrap().is_none(), "nobody asks");
        assert_eq!(stored.trouble().unwrap().to_string(), "exceptions: not read yet");
        stored.write(Read::default());
        assert_eq!(stored.known().unwrap_err().to_string(), "policyexceptions: not listed yet");
        let exception = object("a", 1, "2999-01-01");
        stored.of_namespaces.replace([(("a".to_owned(), "e0001".to_owned()), exception)].into());
        stored.of_cluster.replace(BTreeMap::new());
        assert_eq!(stored.known().unwrap_err().to_string(), "exceptions: not read yet");
        stored.look();
        assert_eq!(stored.known().unwrap().unwrap().iter().count(), 1);
        assert_eq!(stored.trouble(), None);
        let long_ago = Instant::now().checked_sub(Duration::from_secs(61)).unwrap();
        stored.of_namespaces.broke(long_ago);
        assert!(stored.known().unwrap_err().to_string().starts_with("policyexceptions: nothing was heard"));
    }

    #[test]
    fn what_cannot_be_read_lets_nothing_through() {
        let Read { exceptions, mistakes, .. } =
            read(&[object("a", 1, "some day"), object("a", 2, "2999-01-01")], now());
        assert_eq!(exceptions.unwrap().iter().map(PolicyException::name).collect::<Vec<_>>(), ["a/e0002"]);
        let (of, mistake) = mistakes.into_iter().next().unwrap();
        assert_eq!(of, ("a".to_owned(), "e0001".to_owned()));
        assert!(mistake.starts_with("spec.until: Invalid value: \"some day\""), "{mistake}");
    }
}
