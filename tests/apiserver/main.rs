//! Tests of the admit-apiserver package; one program, a module per subject.

mod corpus;
mod harness;
mod housekeeping;
mod http_corpus;
mod kubectl;
mod openapi;
mod protobuf;
mod webhook;
