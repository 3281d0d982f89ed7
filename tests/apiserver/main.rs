//! Tests of the admit-apiserver package; one program, a module per subject.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where and stop"
)]
#![expect(unreachable_pub, reason = "a test program has no outside")]

mod access;
mod aggregation;
mod answers;
mod api;
mod audit;
mod calendar;
mod client_certificates;
mod conversion;
mod corpus;
mod crd_matrix;
mod definitions;
mod disk;
mod emptying;
mod envtest_webhooks;
mod flags;
mod from_files;
mod harness;
mod housekeeping;
mod image_policy;
mod kinds;
mod managed_fields;
mod many_watches;
mod mask;
mod metrics;
mod mutations;
mod openapi;
mod openapi_schemas;
mod ownership;
mod patience;
mod plugins;
mod policy_statuses;
mod privileged;
mod protobuf;
mod quotas;
mod readings;
mod rights;
mod services;
mod statuses;
mod store;
mod stored_texts;
mod table;
mod texts;
mod turns;
mod unread;
mod webhook;
mod webhook_services;
mod webhook_subresources;
mod webhook_users;
mod webhook_wire;
mod webhook_words;
mod words;
mod workloads;
mod worst_patches;
