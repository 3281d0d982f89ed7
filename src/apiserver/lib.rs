//! Implements an embedded Kubernetes API server: a tower service over a versioned store.
//!
//! ```text
//! router / TLS ──► http ──► codec ──► registry ──► admission ──► store ──► redb
//!                   │                  │  ▲                        │
//!                   │                  │  └──────── watches ◄──────┘
//!                   │                  └── conversion, admission ──► callout ──► webhooks and servers of others
//!                   └── discovery, OpenAPI, Tables read resources::ResourceTable
//! ```
//!
//! Only the registry writes. Admission, authorization and conversion read what is stored through the trait
//! `objects::Objects`, which the registry implements, and know nothing of the registry.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `interrupt` | when synchronous work must stop | nothing of ours |
//! | `emptied` | the lists and maps that were sent empty | nothing of ours |
//! | `digest` | the hashes that clients see | nothing of ours |
//! | `housekeeping` | which controllers of kube-controller-manager run beside the server | nothing of ours |
//! | `identity` | who sends a request | nothing of ours |
//! | `logs` | where the logs of pods come from | nothing of ours |
//! | `audit` | what is written in the audit log, and how | identity |
//! | `warning` | `Warning` headers and audit annotations of a request | nothing of ours |
//! | `object` | the metadata of an object that is held as JSON | interrupt |
//! | `clock` | the time of day | object |
//! | `builtin` | the fields of the built-in kinds, and their encodings | emptied, interrupt |
//! | `resources` | one row for each served resource | builtin |
//! | `status` | refusals, in kube-apiserver's words | object, resources |
//! | `cel_types` | the CEL types of the built-in kinds, for type checks | builtin, resources |
//! | [`store`] | objects with their history, and one revision for all | interrupt, object |
//! | `objects` | the read access to a cluster for code that does not write | resources, store |
//! | `kinds` | the behaviour of each built-in kind beyond its schema | builtin, clock, emptied, identity, interrupt, object, resources, status |
//! | `validation` | the errors of an object, or of a change | builtin, interrupt, kinds, object, resources, status |
//! | `patch` | patches that need the schema of the kind | builtin, interrupt |
//! | `managed_fields` | who owns which field; server-side apply | builtin, emptied, interrupt, object |
//! | `table` | what `kubectl get` prints | builtin, interrupt, kinds, object, resources |
//! | `discovery` | the discovery documents of served resources | aggregation, builtin, digest, resources |
//! | `openapi` | the OpenAPI documents of served kinds | builtin, clock, digest, discovery, kinds, resources |
//! | `authentication` | the tokens of service accounts | identity |
//! | `certificate` | the user of a client certificate, and whether it is trusted | digest, identity |
//! | `callout` | one request to a webhook, or to the server of an APIService | certificate, identity, object, objects, store |
//! | `aggregation` | which versions other servers serve, and where | callout |
//! | `conversion` | custom resources in other versions, by webhook | callout, digest, object, objects, status, validation |
//! | `served` | what is served, and the behaviour of custom kinds | conversion, interrupt, managed_fields, object, resources, status, store, table, warning |
//! | `codec` | bodies to objects of a kind | builtin, emptied, kinds, object, resources, served, status |
//! | `call` | one request to a resource, and its options | clock, conversion, emptied, identity, object, resources, served, status, store, warning |
//! | `authorization` | who may do what | call, identity, kinds, object, objects, status, store |
//! | `admission` | which writes are admitted, and how plugins and webhooks change them | call, callout, conversion, digest, identity, interrupt, kinds, metrics, object, objects, resources, served, status, store |
//! | `registry` | the verbs: create, get, list, update, patch, apply, delete, watch | admission, aggregation, authentication, authorization, builtin, call, callout, cel_types, clock, codec, conversion, discovery, emptied, housekeeping, identity, interrupt, kinds, managed_fields, object, objects, patch, resources, served, status, store, validation, warning |
//! | `metrics` | the counts of requests for `/metrics` | resources |
//! | `flowcontrol` | how much work runs concurrently, per user and in total | identity, interrupt, status |
//! | `server` | the state that all requests share, and its start | admission, audit, authentication, authorization, call, callout, clock, conversion, emptied, flowcontrol, housekeeping, identity, logs, metrics, object, openapi, registry, resources, status, store, warning |
//! | `http` | paths, bodies, responses and connections | aggregation, audit, authorization, builtin, call, callout, certificate, clock, codec, conversion, discovery, emptied, flowcontrol, identity, kinds, logs, metrics, object, registry, resources, server, status, table, warning |

mod admission;
mod aggregation;
mod audit;
mod authentication;
mod authorization;
mod builtin;
mod call;
mod callout;
mod cel_types;
mod certificate;
mod clock;
mod codec;
mod conversion;
mod digest;
mod discovery;
mod emptied;
mod flowcontrol;
mod housekeeping;
mod http;
mod identity;
mod interrupt;
mod kinds;
mod logs;
mod managed_fields;
mod metrics;
mod object;
mod objects;
mod openapi;
mod patch;
mod registry;
mod resources;
mod served;
mod server;
mod status;
pub mod store;
mod table;
mod validation;
mod warning;

pub use admission::{AdmissionConfiguration, AdmissionPlugins, PluginError, SettingsError};
pub use audit::{AuditFormat, AuditLog, AuditPolicy, AuditPolicyError, AuditPolicyErrorKind};
pub use authentication::{TokenKey, TokenKeyError, TokenPublicKey};
pub use authorization::AuthorizationMode;
pub use cel_types::BuiltinTypes;
pub use certificate::{ClientCaError, client_verifier};
pub use clock::Clock;
pub use housekeeping::{Controllers, UnknownController};
pub use http::serve::serve as serve_router;
pub use http::tls::Tls;
pub use identity::Identity;
pub use logs::{LogError, LogOptions, LogStream, PodLogs};
pub use registry::{BuiltinKinds, FromFile, OfflinePlugins, ServiceNetwork, ServiceRange, ServiceRangeError};
pub use server::{ProxyClientError, Server, ServerBuilder};
pub use status::Refusal;

/// Internals for the tests of this package. Not part of the API; changes with any commit.
#[doc(hidden)]
pub mod internals {
    pub use crate::builtin::{
        EnumDef, EnumId, Field, ListType, Package, PatchStrategy, RawKind, Tables, TypeDef, TypeId, TypeRef,
        Union, decode, protobuf, tables,
    };
    pub use crate::openapi::OpenApi;
    pub use crate::resources::{
        PrinterColumn, ResourceInfo, ResourceTable, Scope, Subresource, builtin_rows,
    };
    pub use crate::table::{Include, Options, render};

    /// Field ownership.
    pub mod managed_fields {
        pub use crate::managed_fields::{
            ApplyError, Conflict, Conflicts, TooHeavy, Versions, Writer, managers, path, schema, typed,
        };
    }
}

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
