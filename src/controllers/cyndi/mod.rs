//! CyndiPipelines: tables of hosts in the databases of applications, filled by Kafka connectors, and compared with the inventory.
//!
//! Here is what is decided about a pipeline, without any I/O, and what is done in databases. Uses kit and telemetry, and no other
//! controller.

pub mod config;
pub mod connector;
pub mod copy;
pub mod crd;
pub mod database;
pub mod hash;
pub mod merge;
pub mod names;
pub mod plan;
pub mod sql;
pub mod state;
pub mod tables;
pub mod tls;
pub mod validation;
pub mod verdict;
