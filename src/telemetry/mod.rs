//! Logging and metrics of the process.
