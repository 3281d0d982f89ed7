//! Jobs and Pods of `admit up`: processes of this machine, with the status, the events and the logs that a cluster gives.

mod containers;
mod ends;
mod health;
mod hooks;
mod indexed;
mod limits;
mod logs;
mod no_node;
mod place;
mod steps;
mod volumes;
