//! CyndiPipelines against a real PostgreSQL, and an API server as admit is installed on it. Tests are named after the rows of the fact
//! sheet.

mod bench;
mod clients;
mod command;
mod connect;
mod crash;
mod database;
mod removal;
mod rows;
mod secrets;
mod strimzi;
mod trouble;
