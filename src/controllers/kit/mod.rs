//! Provides what every controller needs: resilient watches, the work queue and its error policy, supervised tasks, fenced
//! status writes, finalizers, conditions, events, leader election, and the manager of a set of controllers.
//!
//! It is independent of any kind of object. A controller itself consists of the pipeline fetch → plan → apply →
//! status.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `clock` | what time it is, or what a test says | none of these |
//! | `wait` | growing waits, with jitter | none of these |
//! | `fence` | whether this process may still write | none of these |
//! | `key` | namespace, name and uid of an object | none of these |
//! | `cache` | what is kept of watched objects | none of these |
//! | `conditions` | lists of conditions by type, in every form | none of these |
//! | `events` | events on objects | none of these |
//! | `pods` | why a Pod does not start. Pure | none of these |
//! | `client` | which kubeconfigs a client may be made of | none of these |
//! | `tasks` | supervised tasks | none of these |
//! | `periodic` | work in rounds, when due or woken | none of these |
//! | `definition` | whether a kind is served | none of these |
//! | `retry` | when a failed reconciliation is tried again | key, wait |
//! | `conflict` | read, modify, write, until there is no conflict | retry |
//! | `status` | fenced writes of a status | retry |
//! | `watch` | watches that never end | wait |
//! | `lease` | who leads, by a Lease | fence |
//! | `operator` | the ClusterOperator of a controller | clock, conditions, definition, events, retry, status, wait, watch |
//! | `manager` | a set of controllers under one Lease | definition, lease, operator, wait |
//! | `controller` | events to reconciliations, each object one at a time | cache, events, key, manager, operator, retry, watch |
//! | `finalizer` | the clean-up before an object is deleted | controller, events, retry |
//! | `observe` | the routes for metrics, health and readiness | manager |

pub mod cache;
pub mod client;
pub mod clock;
pub mod conditions;
pub mod conflict;
pub mod controller;
pub mod definition;
pub mod events;
pub mod fence;
pub mod finalizer;
pub mod key;
pub mod lease;
pub mod manager;
pub mod observe;
pub mod operator;
pub mod periodic;
pub mod pods;
pub mod retry;
pub mod status;
pub mod tasks;
pub mod wait;
pub mod watch;
