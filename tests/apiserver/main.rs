//! Tests of the admit-apiserver package; one program, a module per subject.

mod corpus;
mod http_corpus;
mod kubectl;
mod openapi;
mod protobuf;
