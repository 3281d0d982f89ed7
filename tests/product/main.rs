//! Tests of the product as a whole; one program, a module per subject.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where and stop")]

mod architecture;
mod bad_input;
mod bench;
mod calendar;
mod clusteroperator;
mod cyndi;
mod datagather;
mod demo;
mod deploy;
mod e2e;
mod envtest;
mod jobs;
mod kill;
mod kit;
mod licences;
mod live;
mod mustgather;
mod observability;
mod offline;
mod output_schemas;
mod pipelines;
mod reliability;
mod replay;
mod repository;
mod running;
mod security;
mod serve;
mod sftp;
mod shipped;
mod soak;
mod state;
mod suites;
mod support;
mod tour;
mod transcripts;
