//! CyndiPipelines against a real PostgreSQL, and an API server as admit is installed on it. Tests are named after the rows of the fact
//! sheet.

mod bench;
mod canaries;
mod clients;
mod command;
mod connect;
mod crash;
mod database;
mod entering;
mod faults;
mod fenced;
mod leaders;
mod model;
mod removal;
mod roles;
mod rows;
mod secrets;
mod servers;
mod streams;
mod strimzi;
mod thresholds;
mod trouble;
