//! Tests of the admit-policy package; one program, a module per subject.
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where and stop")]

mod api;
mod apply;
mod authentication;
mod authorizing;
mod bad;
mod bounds;
mod converting;
mod crd_suites;
mod custom_resources;
mod deadline;
mod deciding;
mod devices;
mod exceptions;
mod field_errors;
mod json;
mod loading;
mod manifest;
mod matching;
mod places;
mod recording;
mod registration;
mod replacing;
mod review;
mod schemas;
mod server_config;
mod shipped;
mod static_manifests;
mod stored_exceptions;
mod suites;
mod support;
mod system_fields;
mod typing;
mod webhooks;
